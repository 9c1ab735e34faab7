#!/bin/sh
# Validates compose.yaml, without and with compose.witness.yaml, compose.keyshare.yaml and compose.engine.yaml, against
# the Compose specification. Validates the Kubernetes manifests of kustomization.yaml, without and with all components,
# against Kubernetes' own schemas. Needs Python with a package registry, and kubectl, but no cluster and no Docker
# engine.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT INT TERM
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet --disable-pip-version-check \
    compose-spec==0.2.1 kubernetes-validate==1.37.0 PyYAML==6.0.3
kubectl kustomize "$here" >"$folder/alone.yaml"
mkdir "$folder/with"
cp -R "$here/kustomization.yaml" "$here/kubernetes" "$here/config" "$folder/with/"
sed -i 's|^# components:|components:|' "$folder/with/kustomization.yaml"
kubectl kustomize "$folder/with" >"$folder/witness.yaml"
grep -q '^  namespace: fhaim-witness$' "$folder/witness.yaml"
grep -q '^  namespace: fhaim-keyshare$' "$folder/witness.yaml"
grep -q '^kind: StatefulSet$' "$folder/witness.yaml"
for manifests in alone witness; do
    "$folder/env/bin/kubernetes-validate" --strict --quiet "$folder/$manifests.yaml"
done
echo "ok: the manifests are valid for Kubernetes"
cat >"$folder/check.py" <<'PYTHON'
import pathlib
import sys
import tomllib
from urllib.parse import urlsplit

import compose_spec
import yaml


def merged(one, other):
    """Merges two Compose files like Compose does, for files whose common lists have different items."""
    if isinstance(one, dict):
        both = one.keys() | other.keys()
        return {k: merged(one[k], other[k]) if k in one and k in other else one.get(k, other.get(k)) for k in both}
    if isinstance(one, list):
        return one + other
    return other


here, manifests = map(pathlib.Path, sys.argv[1:3])
files = sys.argv[3:]
compose = yaml.safe_load((here / files[0]).read_text())
for file in files[1:]:
    compose = merged(compose, yaml.safe_load((here / file).read_text()))
checked = compose_spec.PyCompose.from_yaml(yaml.safe_dump(compose))
checked.validate()
print("ok:", " and ".join(files), "is valid for Compose:", ", ".join(sorted(checked.service_names())))

# No two parties share a secrets file, a store or a namespace.
names = ("generation", "computation", "crypto", *(["witness"] if len(files) > 1 else []))
parties = (*names, *(["keyshare1"] if len(files) > 1 else []))
for name in parties:
    service = compose["services"][name]
    others = [other for other in parties if other != name]
    assert service["env_file"] == [f"secrets/{name}.env"], service
    assert not {f"s3-{other}" for other in others} & set(service["networks"]), service
    assert f"s3-{name}" in service["networks"] and f"s3-{name}" in compose["volumes"], service
    assert service["read_only"] and service["cap_drop"] == ["ALL"], service
if "witness" in names:
    for name in names[:-1]:
        environment = compose["services"][name]["environment"]
        peers = {variable: value for variable, value in environment.items() if "__PEERS__" in variable}
        wanted = {f"FHAIM_{name.upper()}__COMMON__PEERS__WITNESS": "http://witness:8084"}
        if name == "crypto":
            wanted["FHAIM_CRYPTO__COMMON__PEERS__KEYSHARE1"] = "http://keyshare1:8085"
        assert peers == wanted, peers
    assert compose["services"]["proxy"]["environment"] == {"WITNESS": "witness:8084"}
deployed = list(yaml.safe_load_all(manifests.read_text()))
for manifest in deployed:
    if manifest["kind"] not in ("Deployment", "StatefulSet"):
        continue
    name, spec = manifest["metadata"]["name"], manifest["spec"]["template"]["spec"]
    # Scheduler and executors belong to the computation service.
    party = "computation" if name in ("scheduler", "executor") else name
    assert manifest["metadata"]["namespace"] == f"fhaim-{party}", name
    assert spec["securityContext"]["runAsNonRoot"] and not spec["automountServiceAccountToken"]
    (container,) = spec["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"], name
    secrets = [source["secretRef"]["name"] for source in container.get("envFrom", [])]
    assert secrets == ([] if name in ("proxy", "scheduler") else [name]), (name, secrets)
print("ok: each party has its own secrets, store and namespace")

# Each service has the addresses of all peers of its sample configuration, and the policies allow the calls.
def allowed(namespace, direction, party, port):
    """Whether a policy of a namespace allows calls from or to the namespace of a party."""
    for policy in deployed:
        if policy["kind"] != "NetworkPolicy" or policy["metadata"]["namespace"] != f"fhaim-{namespace}":
            continue
        for rule in policy["spec"].get(direction, []):
            sides = rule.get("from" if direction == "ingress" else "to", [])
            names = [s["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"] for s in sides if "namespaceSelector" in s]
            if f"fhaim-{party}" in names and port in [p["port"] for p in rule["ports"]]:
                return True
    return False


for manifest in deployed:
    if manifest["kind"] != "Deployment" or manifest["metadata"]["name"] not in names:
        continue
    name = manifest["metadata"]["name"]
    (container,) = manifest["spec"]["template"]["spec"]["containers"]
    prefix = f"FHAIM_{name.upper()}__COMMON__PEERS__"
    peers = {v["name"].removeprefix(prefix).lower(): v["value"] for v in container["env"] if v["name"].startswith(prefix)}
    config = tomllib.loads((here / "config" / f"{name}.toml").read_text())
    missing = config["common"]["peers"].keys() - peers.keys()
    assert not missing, (name, missing)
    for peer, address in peers.items():
        party, port = urlsplit(address).hostname.split(".fhaim-")[-1], urlsplit(address).port
        assert allowed(name, "egress", party, port), f"{name} may not call {address}"
        assert allowed(party, "ingress", name, port), f"{party} does not let {name} call it"
print("ok: each service has the addresses of its peers and may call them")

# In the engine, each program has only its own certificate, and each executor has its own name.
if "compose.engine.yaml" in files:
    executors = [name for name in compose["services"] if name.startswith("executor-")]
    assert len(executors) == 3, executors
    for name in ("computation", "scheduler", *executors):
        service, folder = compose["services"][name], name.split("-")[0]
        mounted = [v for v in service["volumes"] if "secrets/" in v]
        assert mounted == [f"./secrets/engine/{folder}:/etc/fhaim/tls:ro"], (name, mounted)
        assert service["read_only"] and service["cap_drop"] == ["ALL"], name
        assert "front" not in service["networks"] or name == "computation", name
    assert [compose["services"][name]["environment"]["FHAIM_EXECUTOR__NAME"] for name in executors] == executors
    assert compose["networks"]["engine"]["internal"], compose["networks"]
    (image,) = [
        manifest["spec"]["template"]["spec"]["containers"][0]["image"]
        for manifest in deployed
        if manifest["kind"] == "Deployment" and manifest["metadata"]["name"] == "computation"
    ]
    assert image.startswith("fhaim-computation-ballista:"), image
    print("ok: scheduler and executors belong to the computation service, each with its own certificate")

# Each service has two replicas. At least one is available while the other is replaced or its node is drained.
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
    # Ten seconds for answers and ten for work in progress (GRACE in the platform), in addition to the pause.
    pause = container["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert pod["terminationGracePeriodSeconds"] >= pause + 20, name
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz", name
print("ok: each service has two replicas, which are replaced one after the other")
PYTHON
"$folder/env/bin/python" "$folder/check.py" "$here" "$folder/alone.yaml" compose.yaml
"$folder/env/bin/python" "$folder/check.py" "$here" "$folder/witness.yaml" compose.yaml compose.witness.yaml compose.keyshare.yaml \
    compose.engine.yaml

python3 "$(dirname "$0")/monitoring/check.py"
