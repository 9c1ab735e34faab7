"""Measures datasets from `dataset upload` to the synthetic table, through the services, by records and by counts.

    python3 research/bench/contributions.py FHAIM TABLE.csv SCHEMA.json [counts|records][+witness][+keys2|+keys3] ...

FHAIM is the program (a release build), TABLE.csv the records. The script starts `FHAIM up` on a new folder. For each
contribution, it makes a dataset at epsilon 1, uploads, runs a job and downloads the result. It prints elapsed seconds, CPU
seconds of the holder's commands and of the services, megabytes of sent objects, the peak memory of both, and the seconds in
which `FHAIM verify` checks every released integer.

With `+witness`, a second computation service in the same process copies the upload and computes every batch too. With
`+keys2` or `+keys3`, two or three key services in the same process share the key. The folder is deleted at the end.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

EPSILON = "1"


def status(process: int, name: str) -> float:
    """Returns a size from a process's status in MB, such as VmHWM, the peak of its resident memory."""
    text = pathlib.Path(f"/proc/{process}/status").read_text()
    return int(re.search(rf"{name}:\s+(\d+) kB", text).group(1)) * 1024 / 1e6


def processor(process: int) -> float:
    """Returns the user and system time of a process in seconds."""
    fields = pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Services:
    """`fhaim up` on a separate folder."""

    def __init__(self, program: str, folder: pathlib.Path):
        self.program, self.folder = program, folder
        self.environment = {**os.environ, "FHAIM_CONFIG_DIR": str(folder / "config"), "NO_COLOR": "1"}
        log = open(folder / "up.log", "w")
        command = [program, "up", "--witness", "--keys", "3", "--data-dir", str(folder / "data"), "--listen", "127.0.0.1:0"]
        self.process = subprocess.Popen(command, stdout=log, stderr=log, env=self.environment)
        address = self.wait_for(r"http://[\d.]+:\d+")
        password = (folder / "data/first-account").read_text().splitlines()[-1]
        self.environment["FHAIM_PASSWORD"] = password
        self.run("account", "login", "--server", address, "--email", "holder@fhaim.local")

    def wait_for(self, pattern: str) -> str:
        for _ in range(600):
            found = re.search(pattern, (self.folder / "up.log").read_text())
            if found and (self.folder / "data/first-account").exists():
                return found.group(0)
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        sys.exit(f"{self.program} up did not start: {(self.folder / 'up.log').read_text()}")

    def run(self, *arguments: str) -> dict:
        """Runs a command. Returns its output, elapsed seconds, CPU seconds and peak memory."""
        start = time.monotonic()
        with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
            command = subprocess.Popen(
                [self.program, *arguments], stdout=output, stderr=errors, env=self.environment
            )
            _, code, usage = os.wait4(command.pid, 0)
            seconds = time.monotonic() - start
            output.seek(0), errors.seek(0)
            if code != 0:
                sys.exit(f"fhaim {' '.join(arguments)}: {errors.read()}")
            return {
                "output": output.read().strip(),
                "seconds": seconds,
                "processor": usage.ru_utime + usage.ru_stime,
                "peak": usage.ru_maxrss * 1024 / 1e6,
            }


def measure(services: Services, table: str, schema: str, contribution: str) -> None:
    create = ["dataset", "create", "--schema", schema, "--data", table, "--epsilon", EPSILON]
    what, *measures = contribution.split("+")
    flags = {"witness": ["--witness"], "keys2": ["--keys", "2"], "keys3": ["--keys", "3"]}
    more = [flag for measure in measures for flag in flags[measure]]
    made = services.run(*create, "--contribution", what, *more)
    dataset = made["output"].splitlines()[-1].split()[-1]
    before = processor(services.process.pid)
    upload = services.run("dataset", "upload", dataset, "--data", table, "--yes", "--json", "-q")
    uploaded = processor(services.process.pid)
    job = services.run("job", "run", dataset, "--watch", "-q")
    identifier = job["output"].splitlines()[0].split()[-1]
    out = str(services.folder / "synthetic.csv")
    download = services.run("download", identifier, "--out", out)
    done = processor(services.process.pid)
    verify = services.run("verify", dataset, "--data", table)
    sent = json.loads(upload["output"])
    print(
        f"| {pathlib.Path(table).stem} | {contribution} | {made['seconds']:.1f} | {upload['seconds']:.1f} "
        f"| {upload['processor']:.1f} + {uploaded - before:.1f} | {job['seconds']:.1f} | {done - uploaded:.1f} "
        f"| {download['seconds']:.1f} | {upload['seconds'] + job['seconds'] + download['seconds']:.1f} "
        f"| {verify['seconds']:.1f} "
        f"| {sum(part['bytes_present'] for part in sent['contributions']) / 1e6:.0f} | {upload['peak']:.0f} | {status(services.process.pid, 'VmHWM'):.0f} |",
        flush=True,
    )


def main() -> None:
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    program, table, schema, *contributions = sys.argv[1:]
    print("| table | by | create s | upload s | processor s, holder + services | job s | processor s "
          "| download s | upload to table s | verify s | MB sent | MB holder | MB services |")
    print("|" + "---|" * 13)
    for contribution in contributions or ["counts", "records"]:
        with tempfile.TemporaryDirectory() as folder:
            services = Services(program, pathlib.Path(folder))
            try:
                measure(services, table, schema, contribution)
            finally:
                services.process.terminate()
                services.process.wait()


if __name__ == "__main__":
    main()
