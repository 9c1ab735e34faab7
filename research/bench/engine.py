"""Runs jobs on the engine with real tables, kills some of its programs, and checks the results with a second service.

    . FOLDER/variables   # of `.ci/servers FOLDER`: Postgres and S3
    python3 research/bench/engine.py [--task-mb N] [--least-products N] [--epsilon E] FHAIM ENGINE TABLE.csv SCHEMA.json [CASE ...]

FHAIM is the program, ENGINE the folder of engine/ballista's three programs. The script starts these processes, with
certificates, separate databases and blobs in S3:

- the generation service, the crypto service, and the second computation service (`FHAIM serve witness`, on threads)
- a scheduler, and three executors that run one task at a time on a single thread
- `fhaim-computation-ballista`

It uploads TABLE.csv by records once, and runs a job for each CASE:

    threads    computes all batches on threads of the computation service
    engine     sends batches of at least --least-products products (default 0) to executors
    multiply   as engine; kills an executor (kill -9) when it begins to multiply
    pack       as engine; kills an executor when it begins to pack
    scheduler  as engine; kills the scheduler when an executor begins to multiply, and starts it again
    memory     as engine; gives one executor only 1 MiB of memory

The second service computes every batch as well. Nothing is decrypted unless both services have sent the same bytes
(docs/THREAT-MODEL.md, "Two computation services"). The pages of a finished job are therefore equal, bit for bit. At the end,
`FHAIM verify` recomputes every released integer.

For each job, the script prints elapsed seconds, CPU seconds and peak memory of the programs, megabytes of sums and roots that
were passed between stages, and megabytes of blobs that executors read. The executors' results and all logs are in a temporary
folder, which is deleted unless something fails.
"""

import argparse
import json
import os
import pathlib
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
CASES = ["threads", "engine", "multiply", "pack", "scheduler", "memory"]
EXECUTORS = ["executor0", "executor1", "executor2"]
# The address of the engine's programs, which their certificates name.
HOST = "127.0.0.1"
GIB = 1 << 30


def free_ports(number: int) -> list[int]:
    sockets = [socket.socket() for _ in range(number)]
    for one in sockets:
        one.bind((HOST, 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Program:
    """A program that can be killed and restarted. Restarts append to its log."""

    def __init__(self, folder: pathlib.Path, name: str, command: list[str], environment: dict):
        self.name, self.command, self.environment = name, command, environment
        self.log = folder / f"{name}.log"
        self.ended_seconds = 0.0
        self.start()

    def start(self) -> None:
        with open(self.log, "a") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log, env=self.environment)

    def stop(self, how: int) -> None:
        self.process.send_signal(how)
        _, code, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = code
        self.ended_seconds += usage.ru_utime + usage.ru_stime

    def processor(self) -> float:
        """Returns the CPU seconds since the first start."""
        stat = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text()
        fields = stat.rsplit(")", 1)[1].split()
        return self.ended_seconds + (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def forget_peak(self) -> None:
        pathlib.Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    def peak(self) -> float:
        """Returns the peak of resident megabytes since the start, or since `forget_peak`."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+) kB", status).group(1)) * 1024 / 1e6

    def said(self, since: int = 0) -> str:
        with open(self.log) as log:
            log.seek(since)
            return log.read()


class Cluster:
    """All programs, with a Postgres and an S3 server."""

    def __init__(self, arguments: argparse.Namespace, folder: pathlib.Path):
        self.arguments, self.folder = arguments, folder
        self.run_name = f"engine-{secrets.token_hex(4)}"
        services = ["generation", "computation", "crypto", "witness"]
        ports = free_ports(len(services) + 1 + len(EXECUTORS))
        self.addresses = {name: f"{HOST}:{port}" for name, port in zip(services, ports)}
        self.scheduler_port, *self.executor_ports = ports[len(services):]
        self.certify()
        self.databases = [self.database(name) for name in services]
        self.programs = {}
        for name in ["generation", "crypto", "witness"]:
            self.begin(name, [arguments.fhaim, "serve", name], self.service(name))
        self.begin("scheduler", [f"{arguments.engine}/fhaim-scheduler"], self.scheduler())
        for number, name in enumerate(EXECUTORS):
            self.begin(name, [f"{arguments.engine}/fhaim-executor"], self.executor(number, GIB))
        self.begin("computation", [f"{arguments.engine}/fhaim-computation-ballista"],
                   self.service("computation") + self.remote(arguments.least_products))

    def certify(self) -> None:
        names = [f"{name}={HOST}" for name in ["computation", "scheduler", "executor"]]
        script = ["sh", str(ROOT / "infra/engine-certificates.sh"), *names]
        environment = {**os.environ, "FOLDER": str(self.folder / "certificates")}
        subprocess.run(script, env=environment, check=True, stdout=subprocess.DEVNULL)

    def database(self, service: str) -> str:
        """Creates a database on the Postgres server, and returns its name."""
        name = f"{self.run_name}-{service}".replace("-", "_")
        self.sql(f"create database {name}")
        return name

    def sql(self, statement: str) -> None:
        command = ["psql", "-q", "-d", os.environ["FHAIM_TEST_POSTGRES"], "-c", statement]
        subprocess.run(command, check=True)

    def blobs(self, service: str) -> str:
        return f'url = "s3://fhaim/{self.run_name}/{service}"\nendpoint = "{os.environ["FHAIM_TEST_S3"]}"\nregion = "us-east-1"\n'

    def service(self, name: str) -> str:
        server = os.environ["FHAIM_TEST_POSTGRES"].rsplit("/", 1)[0]
        database = f"{self.run_name}-{name}".replace("-", "_")
        peers = "".join(f'{peer} = "http://{at}"\n' for peer, at in self.addresses.items() if peer != name)
        return (f'[common]\nlisten = "{self.addresses[name]}"\n[common.database]\nurl = "{server}/{database}"\n'
                f'[common.blobs]\n{self.blobs(name)}[common.sealing]\nvariable = "FHAIM_SEALING_KEYS"\n'
                f"[common.peers]\n{peers}")

    def tls(self, program: str, section: str) -> str:
        files = self.folder / "certificates" / program
        names = {"authority": "authority", "certificate": "certificate", "key": "key"}
        return f"[{section}]\n" + "".join(f'{field} = "{files}/{file}.pem"\n' for field, file in names.items())

    def remote(self, least_products: int) -> str:
        return (f'[engine]\nscheduler = "https://{HOST}:{self.scheduler_port}"\nleast_products = {least_products}\n'
                f"task_bytes = {self.arguments.task_mb << 20}\npackers = {len(EXECUTORS)}\nattempts = 10\n"
                f'pause_seconds = 2\n{self.tls("computation", "engine.tls")}')

    def scheduler(self) -> str:
        return (f'listen = "{HOST}:{self.scheduler_port}"\nname = "{HOST}"\nexecutor_timeout_seconds = 6\n'
                + self.tls("scheduler", "tls"))

    def executor(self, number: int, memory: int) -> str:
        return (f'listen = "{HOST}:{self.executor_ports[number]}"\nscheduler_host = "{HOST}"\n'
                f'scheduler_port = {self.scheduler_port}\nwork = "{self.folder}/work{number}"\ntasks = 1\n'
                f"memory_bytes = {memory}\nheartbeat_seconds = 1\n{self.tls('executor', 'tls')}"
                f'[blobs]\n{self.blobs("computation")}')

    def begin(self, name: str, command: list[str], configuration: str) -> None:
        file = self.folder / f"{name}.toml"
        file.write_text(configuration)
        environment = {**os.environ, "FHAIM_SEALING_KEYS": secrets.token_hex(32), "NO_COLOR": "1"}
        if name in EXECUTORS:
            environment["RAYON_NUM_THREADS"] = "1"
        self.programs[name] = Program(self.folder, name, [*command, "--config", str(file)], environment)

    def configure(self, name: str, configuration: str) -> None:
        """Restarts a program with another configuration."""
        self.programs[name].stop(signal.SIGTERM)
        (self.folder / f"{name}.toml").write_text(configuration)
        self.programs[name].start()

    def wait_until_they_listen(self) -> None:
        ports = [int(at.rsplit(":", 1)[1]) for at in self.addresses.values()]
        for port in [*ports, self.scheduler_port, *self.executor_ports]:
            for _ in range(600):
                with socket.socket() as one:
                    if one.connect_ex((HOST, port)) == 0:
                        break
                time.sleep(0.1)
            else:
                sys.exit(f"no program listens on port {port}: see the logs in {self.folder}")

    def end(self) -> None:
        for program in self.programs.values():
            program.process.kill()
            program.process.wait()
        for database in self.databases:
            self.sql(f"drop database {database}")


class Holder:
    """Runs commands of a signed-in holder."""

    def __init__(self, cluster: Cluster):
        self.program = cluster.arguments.fhaim
        self.environment = {**os.environ, "FHAIM_CONFIG_DIR": str(cluster.folder / "config"), "NO_COLOR": "1",
                            "FHAIM_PASSWORD": secrets.token_hex(16)}
        services = [f"--{name}=http://{at}" for name, at in cluster.addresses.items()]
        self.run("account", "login", *services, "--email", "holder@engine.test", "--sign-up")

    def start(self, *arguments: str) -> subprocess.Popen:
        return subprocess.Popen([self.program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                env=self.environment)

    def run(self, *arguments: str) -> str:
        command = self.start(*arguments)
        output, _ = command.communicate()
        if command.returncode != 0:
            raise RuntimeError(f"fhaim {' '.join(arguments)}: {output}")
        return output.strip()


class Account:
    """Measures the work of the programs since its creation."""

    def __init__(self, cluster: Cluster):
        self.programs = cluster.programs
        self.started = time.monotonic()
        self.logs = {name: program.log.stat().st_size for name, program in self.programs.items()}
        self.processor = {name: program.processor() for name, program in self.programs.items()}
        for program in self.programs.values():
            program.forget_peak()

    def said(self, name: str) -> str:
        return self.programs[name].said(self.logs[name])

    def seconds(self, names: list[str]) -> float:
        return sum(self.programs[name].processor() - self.processor[name] for name in names)

    def peak(self, names: list[str]) -> float:
        return max(self.programs[name].peak() for name in names)

    def megabytes(self, what: str) -> float:
        lines = [line for name in EXECUTORS for line in self.said(name).splitlines() if what in line]
        return sum(int(re.search(r"bytes=(\d+)", line).group(1)) for line in lines) / 1e6

    def read(self) -> float:
        """Returns the megabytes of blobs that executors read. Their logs count from their last start."""
        sums = 0
        for name in EXECUTORS:
            before = [int(n) for n in re.findall(r"read=(\d+)", self.programs[name].said())]
            within = [int(n) for n in re.findall(r"read=(\d+)", self.said(name))]
            last = before[-len(within) - 1] if len(before) > len(within) else 0
            for now in within:
                sums += now - last if now >= last else now
                last = now
        return sums / 1e6

    def who_first_said(self, what: str, job: subprocess.Popen) -> str:
        while job.poll() is None:
            for name in EXECUTORS:
                if what in self.said(name):
                    return name
            time.sleep(0.002)
        raise RuntimeError(f"the job ended before an executor said {what!r}: {job.stdout.read()}")


def disturb(cluster: Cluster, account: Account, case: str, job: subprocess.Popen) -> str:
    """Kills the program that the case names, once. Returns its name."""
    if case not in ("multiply", "pack", "scheduler"):
        return ""
    stage = "pack" if case == "pack" else "multiply"
    first = account.who_first_said(f"{stage}: begins", job)
    victim = cluster.programs["scheduler" if case == "scheduler" else first]
    victim.stop(signal.SIGKILL)
    if case == "scheduler":
        time.sleep(1)
        victim.start()
    return victim.name


def prepare(cluster: Cluster, case: str) -> None:
    arguments = cluster.arguments
    never = 1 << 62
    least = never if case == "threads" else arguments.least_products
    cluster.configure("computation", cluster.service("computation") + cluster.remote(least))
    cluster.configure("executor0", cluster.executor(0, 1 << 20 if case == "memory" else GIB))
    cluster.wait_until_they_listen()
    # Wait until the executors have asked for work.
    time.sleep(3)


def job(cluster: Cluster, holder: Holder, dataset: str, case: str) -> None:
    prepare(cluster, case)
    account = Account(cluster)
    running = holder.start("job", "run", dataset, "--watch", "-q", "--yes")
    victim = disturb(cluster, account, case, running)
    output, _ = running.communicate()
    seconds = time.monotonic() - account.started
    if running.returncode != 0:
        raise RuntimeError(f"{case}: {output}")
    if victim.startswith("executor"):
        cluster.programs[victim].start()
    batches = re.findall(r"a batch.*?products=(\d+) elsewhere=(true|false)", account.said("computation"))
    sent = [int(products) for products, elsewhere in batches if elsewhere == "true"]
    refused = sum(account.said(name).count("too little memory") for name in EXECUTORS)
    tasks = [account.said(name).count("multiply: done") for name in EXECUTORS]
    if case == "memory" and not (refused and tasks[0] == 0):
        raise RuntimeError(f"memory: {refused} tasks refused, {tasks[0]} done by the executor without memory")
    if case != "threads" and not sum(tasks):
        raise RuntimeError(f"{case}: no executor computed anything")
    row = [
        case, f"{len(batches)}, {len(sent)}, {sum(sent)}", f"{seconds:.1f}",
        *(f"{account.seconds(names):.1f}" for names in [["computation"], EXECUTORS, ["scheduler"], ["witness"]]),
        *(f"{account.peak(names):.0f}" for names in [["computation"], EXECUTORS, ["scheduler"]]),
        f"{account.megabytes('multiply: done'):.1f}", f"{account.megabytes('pack: done'):.1f}", f"{account.read():.1f}",
        "/".join(map(str, tasks)), f"{refused}", victim,
    ]
    print("| " + " | ".join(row) + " |", flush=True)


def measure(cluster: Cluster, cases: list[str]) -> None:
    cluster.wait_until_they_listen()
    holder = Holder(cluster)
    arguments = cluster.arguments
    made = holder.run("dataset", "create", "--schema", arguments.schema, "--data", arguments.table, "--epsilon",
                      arguments.epsilon, "--runs", str(len(cases)), "--witness", "-q", "--yes")
    dataset = made.splitlines()[-1].split()[-1]
    account = Account(cluster)
    upload = holder.run("dataset", "upload", dataset, "--data", arguments.table, "--yes", "--json", "-q")
    sent = sum(part["bytes_present"] for part in json.loads(upload)["contributions"]) / 1e6
    print(f"upload: {sent:.0f} MB in {time.monotonic() - account.started:.1f} s; dataset {dataset}, epsilon {arguments.epsilon} "
          f"for {len(cases)} runs, tasks of {arguments.task_mb} MiB", flush=True)
    print("| case | batches, sent, their products | s | processor s: computation | executors | scheduler | second service "
          "| MB at the peak: computation | an executor | scheduler | MB of sums | MB of roots | MB of blobs read "
          "| tasks an executor | refused for memory | killed |")
    print("|" + "---|" * 16)
    for case in cases:
        job(cluster, holder, dataset, case)
    print(holder.run("verify", dataset, "--data", arguments.table).splitlines()[-1], flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fhaim")
    parser.add_argument("engine")
    parser.add_argument("table")
    parser.add_argument("schema")
    parser.add_argument("cases", nargs="*", choices=[*CASES, []], metavar="CASE")
    parser.add_argument("--task-mb", type=int, default=256, help="approximate memory of a task, in MiB")
    parser.add_argument("--least-products", type=int, default=0)
    parser.add_argument("--epsilon", default="4", help="budget of all jobs together")
    arguments = parser.parse_args()
    if "FHAIM_TEST_POSTGRES" not in os.environ:
        sys.exit("source FOLDER/variables of `.ci/servers FOLDER` first")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="fhaim-engine-"))
    cluster = Cluster(arguments, folder)
    try:
        measure(cluster, arguments.cases or CASES)
    except BaseException:
        print(f"logs are in {folder}", file=sys.stderr)
        raise
    finally:
        cluster.end()
    shutil.rmtree(folder)


main()
