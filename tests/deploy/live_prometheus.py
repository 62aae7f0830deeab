"""A server that has done some work, and a real Prometheus that scrapes it with the configuration in deploy/."""

import json
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

import yaml

import switchyard_process

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
PROMETHEUS = shutil.which("prometheus")
COMPLETIONS = 3
TOKENS = 16  # of each completion
POD = {"namespace": "prod", "pod": "switchyard-0"}  # as the Prometheus operator labels a target
TIMEOUT_S = 120


def free_port():
    """Prometheus cannot tell which port it was given, so one that is free now has to do."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def get(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read().decode("utf-8")


def metric_names(expression):
    """The names of ours in a PromQL expression, as /metrics has them."""
    return set(re.findall(r"\bswitchyard_[a-z0-9_]+\b", expression))


class LivePrometheus:
    """Ended with close(). `page` is what /metrics said when everything was scraped twice since the last request."""

    def __init__(self):
        self.at = None  # the time of that second scrape: queries look from there, however slow the machine is
        self.folder = tempfile.TemporaryDirectory()
        model = ROOT / "models" / "bible-moa"
        text = pathlib.Path(self.folder.name, "text.txt")
        text.write_text("And the king said unto the people, Go up." * 20, encoding="utf-8")
        baseline = pathlib.Path(self.folder.name, "baseline.json")
        profiled = switchyard_process.run("experts", "--model", model, "--profile", text, "--save-baseline", baseline)
        if profiled.returncode != 0:
            raise RuntimeError(profiled.stderr)
        self.server = switchyard_process.ServerProcess(
            model, "--http", "127.0.0.1:0", "--expert-metrics", "full", "--expert-baseline", baseline
        )
        self.prometheus = None
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    def close(self):
        if self.prometheus is not None:
            self.prometheus.terminate()
            self.prometheus.wait(TIMEOUT_S)
        self.server.stop()
        self.folder.cleanup()

    def _start(self):
        switchyard_process.run("health", "--server", self.server.address, "--wait", TIMEOUT_S)
        self.metrics_url = f"http://127.0.0.1:{self.server.http_port()}/metrics"
        self._start_prometheus()
        self.wait_for("up", lambda found: found and found[0]["value"][1] == "1")
        for _ in range(COMPLETIONS):
            finished = switchyard_process.run(
                "generate", "--server", self.server.address, "--prompt", "And the king said", "--ignore-eos",
                "--max-tokens", TOKENS,
            )  # fmt: skip
            if finished.returncode != 0:
                raise RuntimeError(finished.stderr)
        # The second scrape after the last request is the first whose rates have seen all of it.
        finished_at = time.time()
        for _ in range(2):
            (latest,) = self.wait_for("timestamp(up)", lambda found, at=finished_at: float(found[0]["value"][1]) > at)
            finished_at = float(latest["value"][1])
        self.at = finished_at
        self.page = get(self.metrics_url)

    def _start_prometheus(self):
        folder = pathlib.Path(self.folder.name)
        config = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text(encoding="utf-8"))
        config["global"] = {"scrape_interval": "500ms", "scrape_timeout": "500ms", "evaluation_interval": "500ms"}
        (job,) = config["scrape_configs"]
        job["static_configs"] = [{"targets": [self.metrics_url.split("/")[2]], "labels": POD}]
        (folder / "prometheus.yml").write_text(yaml.safe_dump(config), encoding="utf-8")
        for name in config["rule_files"]:
            shutil.copy(DEPLOY / name, folder / name)
        self.url = f"http://127.0.0.1:{free_port()}"
        self.log = folder / "prometheus.log"
        with open(self.log, "w", encoding="utf-8") as log:
            self.prometheus = subprocess.Popen(
                [PROMETHEUS, f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
                 f"--web.listen-address={self.url[7:]}", "--log.level=warn"],
                stdout=log, stderr=subprocess.STDOUT,
            )  # fmt: skip

    def api(self, path, **parameters):
        """What Prometheus answers; its error message as a ValueError, or as an OSError while it starts."""
        try:
            answer = json.loads(get(f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"))
        except urllib.error.HTTPError as error:
            kind = OSError if error.code == 503 else ValueError
            raise kind(error.read().decode("utf-8")) from None
        return answer["data"]

    def query(self, expression):
        """The series that the expression gives."""
        moment = {} if self.at is None else {"time": self.at}
        return self.api("query", query=expression, **moment)["result"]

    def number(self, expression):
        """The value of an expression that gives exactly one series."""
        (series,) = self.query(expression)
        return float(series["value"][1])

    def wait_for(self, expression, is_enough):
        """The series, once there are enough. Prometheus itself may take a while to start."""
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            try:
                found = self.query(expression)
                if is_enough(found):
                    return found
            except (OSError, IndexError):
                found = None
            if time.monotonic() > deadline or self.prometheus.poll() is not None:
                raise RuntimeError(f"{expression} is {found}\n{self.log.read_text(encoding='utf-8')}")
            time.sleep(0.1)
