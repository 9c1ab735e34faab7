#!/bin/sh
# Checks compose.yaml against the Compose specification, and the Kubernetes manifests, as
# kustomization.yaml puts them together, against Kubernetes' own schemas. Needs Python with a package
# registry, and kubectl; no cluster and no Docker engine.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT INT TERM
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet --disable-pip-version-check \
    compose-spec==0.2.1 kubernetes-validate==1.37.0 PyYAML==6.0.3
kubectl kustomize "$here" >"$folder/manifests.yaml"
"$folder/env/bin/kubernetes-validate" --strict --quiet "$folder/manifests.yaml"
# The same with what its lines that begin with #+ add.
mkdir "$folder/distrust"
cp -R "$here/kubernetes" "$here/config" "$folder/distrust"
sed 's/#+ //' "$here/kustomization.yaml" >"$folder/distrust/kustomization.yaml"
kubectl kustomize "$folder/distrust" >"$folder/distrust.yaml"
"$folder/env/bin/kubernetes-validate" --strict --quiet "$folder/distrust.yaml"
echo "ok: the manifests are what Kubernetes takes"
"$folder/env/bin/python" - "$here" "$folder/manifests.yaml" "$folder/distrust.yaml" <<'PYTHON'
import pathlib
import sys

import compose_spec
import yaml

here, manifests, distrust = map(pathlib.Path, sys.argv[1:])
compose = yaml.safe_load((here / "compose.yaml").read_text())
checked = compose_spec.PyCompose.from_yaml(yaml.safe_dump(compose))
checked.validate()
print("ok: compose.yaml is what Compose takes:", ", ".join(sorted(checked.service_names())))


def merged(one, other):
    """As Compose puts two files together: tables by their names, anything else replaced."""
    if not (isinstance(one, dict) and isinstance(other, dict)):
        return other
    return one | {name: merged(one.get(name), value) for name, value in other.items()}


wider = merged(compose, yaml.safe_load((here / "compose.distrust.yaml").read_text()))
checked = compose_spec.PyCompose.from_yaml(yaml.safe_dump(wider))
checked.validate()
print("ok: so is compose.distrust.yaml over it:", ", ".join(sorted(checked.service_names())))

# No two parties share a file of secrets, a store or a namespace.
names = ("generation", "computation", "crypto")
further = ("witness", "keyshare1")
for name in names + further:
    service = wider["services"][name]
    others = [other for other in names + further if other != name]
    assert service["env_file"] == [f"secrets/{name}.env"], service
    assert not {f"s3-{other}" for other in others} & set(service["networks"]), service
    assert service["read_only"] and service["cap_drop"] == ["ALL"], service
deployed = list(yaml.safe_load_all(manifests.read_text()))
all_deployed = list(yaml.safe_load_all(distrust.read_text()))
for manifest in all_deployed:
    if manifest["kind"] != "Deployment":
        continue
    name, spec = manifest["metadata"]["name"], manifest["spec"]["template"]["spec"]
    assert manifest["metadata"]["namespace"] == f"fhaim-{name}", name
    assert spec["securityContext"]["runAsNonRoot"] and not spec["automountServiceAccountToken"]
    (container,) = spec["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"], name
    secrets = [source["secretRef"]["name"] for source in container.get("envFrom", [])]
    assert secrets == ([] if name == "proxy" else [name]), (name, secrets)
print("ok: each party has its own secrets, store and namespace")

# Two replicas of each service, one of which is there whatever is replaced, or emptied.
budgets = {m["metadata"]["name"] for m in deployed if m["kind"] == "PodDisruptionBudget"}
assert budgets == set(names), budgets
for manifest in deployed:
    name, spec = manifest["metadata"]["name"], manifest.get("spec", {})
    if manifest["kind"] != "Deployment" or name not in names:
        continue
    assert spec["replicas"] >= 2 and compose["services"][name]["deploy"]["replicas"] >= 2, name
    assert spec["strategy"]["rollingUpdate"]["maxUnavailable"] == 0, name
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    # Ten seconds for answers, ten for work under way (GRACE in the platform), beside the pause.
    pause = container["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert pod["terminationGracePeriodSeconds"] >= pause + 20, name
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz", name
print("ok: two replicas of each service, replaced one after the other")
PYTHON

python3 "$(dirname "$0")/monitoring/check.py"
