"""Hundreds of streams, many of which are cancelled, run out of time or are not read, for as long as it is told; then
nothing may be left of them, and whatever finished must be what the same request gives alone."""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

START_TIMEOUT_S = 300


def resident_bytes(process_id):
    for line in Path(f"/proc/{process_id}/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return None  # it has died


class Server:
    def __init__(self, program, model, arguments):
        command = [program, "serve", "--model", model, "--listen", "127.0.0.1:0", *arguments]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.log = []
        self.port = None
        self.is_ready = threading.Event()
        self.reader = threading.Thread(target=self.read_log, daemon=True)
        self.reader.start()
        if not self.is_ready.wait(START_TIMEOUT_S) or self.port is None:
            self.process.kill()
            raise RuntimeError("the server did not start:\n" + "".join(self.log))
        self.address = f"127.0.0.1:{self.port}"

    def read_log(self):
        for line in self.process.stderr:
            self.log.append(line)
            found = re.search(r"event=ready .*port=(\d+)", line)
            if found:
                self.port = found.group(1)
                self.is_ready.set()
        self.is_ready.set()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(120)
        self.reader.join()
        return status


def load_of(client_program, address):
    shown = subprocess.run(
        [client_program, "load", "--server", address, "--json"], check=True, capture_output=True, text=True, timeout=60
    )
    return json.loads(shown.stdout)


def wait_until_idle(client_program, address, failures):
    """Whatever was cut short is gone within a step; what the clients left may take as long as a stall."""
    deadline = time.monotonic() + 60
    while True:
        load = load_of(client_program, address)
        left = {name: int(load[name]) for name in ("running_requests", "waiting_requests", "queued_tokens", "open_streams", "kv_blocks_used")}
        if not any(left.values()):
            return load
        if time.monotonic() > deadline:
            failures.append(f"left behind: {left}")
            return load
        time.sleep(0.2)


def bench(options, address, output):
    return [
        options.client, "bench", "--server", address,
        "--concurrency", options.streams, "--duration", options.seconds,
        "--prompts", options.prompts, "--output", output,
        "--cancel-share", "0.33", "--deadline-share", "0.1", "--deadline-ms", "300",
        "--stall-share", "0.03", "--stall-seconds", "4",
        "--temperature", "0", "--verify-share", "1",
    ]  # fmt: skip


def write_prompts(path, count):
    """A few dozen requests that come again and again: some share their beginning, some are long."""
    verses = [
        "In the beginning God created the heaven and the earth.",
        "And the evening and the morning were the first day.",
        "The LORD is my shepherd; I shall not want.",
        "He maketh me to lie down in green pastures: he leadeth me beside the still waters.",
        "And Moses said unto the people, Fear ye not, stand still, and see the salvation of the LORD.",
    ]
    with open(path, "w", encoding="utf-8") as file:
        for number in range(count):
            prompt = " ".join(verses[(number + i) % len(verses)] for i in range(1 + number % 4)) * (1 + number % 3)
            file.write(json.dumps({"prompt": prompt, "max_tokens": 4 + 5 * (number % 9)}) + "\n")


def run(options):
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        options.prompts = os.path.join(folder, "prompts.jsonl")
        output = os.path.join(folder, "bench.json")
        write_prompts(options.prompts, 48)
        server = Server(options.server, options.model, options.serve_arguments)
        started = time.monotonic()
        driver = subprocess.Popen([str(word) for word in bench(options, server.address, output)])
        early = None
        late = None
        while driver.poll() is None:
            time.sleep(0.5)
            elapsed = time.monotonic() - started
            if early is None and elapsed > min(60, options.seconds / 2):
                early = resident_bytes(server.process.pid)
            if elapsed < options.seconds and server.process.poll() is None:
                late = resident_bytes(server.process.pid) or late
        if driver.returncode != 0:
            failures.append(f"bench ended with status {driver.returncode}")
        if server.process.poll() is not None:
            failures.append(f"the server died with status {server.process.returncode}")
        else:
            load = wait_until_idle(options.client, server.address, failures)
            print(f"after the load: {load}")
            status = server.stop()
            if status != 0:
                failures.append(f"the server ended with status {status}")
        check_report(output, failures)
        if early and late:
            print(f"resident memory: {early / 1e6:.1f} MB early, {late / 1e6:.1f} MB late ({late / early - 1:+.2%})")
            if options.check_memory and abs(late / early - 1) > 0.02:
                failures.append("resident memory moved by more than 2 %")
    if failures:
        print("".join(server.log[-40:]))
    return failures


def check_report(output, failures):
    if not os.path.exists(output):
        failures.append("bench left no report")
        return
    report = json.loads(Path(output).read_text(encoding="utf-8"))
    requests = report["requests"]
    print(f"requests: {requests}\nverification: {report['verification']}\nfailures: {report['failures']}")
    for name in ("completed", "cancelled", "past_deadline", "stalled"):
        if requests[name] == 0:
            failures.append(f"no request was {name}: the load did not test what it is for")
    if requests["failed"]:
        failures.append(f"{requests['failed']} requests failed")
    verification = report["verification"] or {"checked": 0, "mismatches": []}
    if verification["checked"] < requests["completed"]:
        failures.append("not every finished stream was compared")
    if verification["mismatches"]:
        failures.append("streams differ from the same requests alone")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", required=True, help="the program that serves")
    parser.add_argument("--client", required=True, help="the program that makes the load")
    parser.add_argument("--model", required=True)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--streams", type=int, default=256)
    parser.add_argument("--check-memory", action="store_true")
    parser.add_argument("serve_arguments", nargs="*", help="further flags of serve")
    options = parser.parse_args()
    failures = run(options)
    for failure in failures:
        print(f"FAILED: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
