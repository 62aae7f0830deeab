"""The alerts of deploy/, their unit tests, and that the runbook knows them and every status code."""

import re
import shutil
import subprocess
import unittest

import yaml

from live_prometheus import DEPLOY, ROOT, metric_names

PROMTOOL = shutil.which("promtool")
RUNBOOK = (DEPLOY / "RUNBOOK.md").read_text(encoding="utf-8")
GROUPS = yaml.safe_load((DEPLOY / "alerts.yaml").read_text(encoding="utf-8"))["groups"]
RULES = [rule for group in GROUPS for rule in group["rules"]]
CODES = (
    "InvalidArgument|NotFound|AlreadyExists|ResourceExhausted|FailedPrecondition|Unavailable|Internal|Unimplemented|DataLoss|"
    "Unauthenticated|PermissionDenied"
)


def sources(*folders):
    """The text of all source files in these folders."""
    paths = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.cc"))]
    return "".join(path.read_text(encoding="utf-8") for path in paths)


def sections(title):
    """The headings under a chapter of the runbook, in order."""
    chapter = RUNBOOK.split(f"\n## {title}\n")[1].split("\n## ")[0]
    return re.findall(r"^### (\w+)$", chapter, re.MULTILINE)


def documented_metrics():
    """The names in docs/metrics.md, whole."""
    rows = re.findall(r"^\| (`[^|]*) \|", (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8"), re.MULTILINE)
    names = {f"switchyard_{name}" for row in rows for name in re.findall(r"`(\w+)`", row)}
    return names | {f"{name}_{part}" for name in names for part in ("bucket", "sum", "count")}


def status_codes():
    """What the sources make statuses of, and what the contract names, as gRPC spells it."""
    text = sources("engine", "server", "text")
    made = set(re.findall(rf"\b({CODES})\(", text))
    made |= set(re.findall(r"StatusCode::k([A-Z]\w+)", text)) - {"Ok"}
    contract = (ROOT / "proto/switchyard/v1/inference.proto").read_text(encoding="utf-8")
    named = re.findall(r"^//   ([A-Z_]{5,}) ", contract, re.MULTILINE)
    return {re.sub(r"(?<=[a-z])(?=[A-Z])", "_", code).upper() for code in made} | set(named)


class TestAlerts(unittest.TestCase):
    @unittest.skipIf(PROMTOOL is None, "no promtool here; tools/install_dependencies.sh test installs it")
    def test_promtool_takes_the_rules_and_their_unit_tests_pass(self):
        for command in (["check", "rules", DEPLOY / "alerts.yaml"], ["test", "rules", ROOT / "tests/deploy/alerts_test.yaml"]):
            with self.subTest(command=command):
                done = subprocess.run([PROMTOOL, *map(str, command)], capture_output=True, text=True, timeout=120)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_each_has_a_severity_and_leads_to_its_section_of_the_runbook(self):
        self.assertEqual(sections("Alerts"), [rule["alert"] for rule in RULES])
        for rule in RULES:
            with self.subTest(alert=rule["alert"]):
                self.assertIn(rule["labels"]["severity"], ("critical", "warning"))
                self.assertEqual(rule["annotations"]["runbook"], f"RUNBOOK.md#{rule['alert'].lower()}")
                self.assertIn("$labels.instance", rule["annotations"]["summary"])

    def test_watches_metrics_that_are_documented(self):
        for rule in RULES:
            with self.subTest(alert=rule["alert"]):
                self.assertLessEqual(metric_names(rule["expr"]), documented_metrics())

    def test_what_has_to_be_watched_is(self):
        watched = set().union(*(metric_names(rule["expr"]) for rule in RULES))
        self.assertLessEqual(
            {
                "switchyard_expert_dead_ratio", "switchyard_kv_cache_usage_ratio", "switchyard_requests_total",
                "switchyard_engine_heartbeat_age_seconds", "switchyard_request_queue_seconds_bucket",
            },
            watched,
        )  # fmt: skip


class TestRunbook(unittest.TestCase):
    def test_has_a_section_for_each_status_code_of_the_server(self):
        codes = status_codes()
        self.assertLessEqual({"INVALID_ARGUMENT", "RESOURCE_EXHAUSTED", "DEADLINE_EXCEEDED", "INTERNAL"}, codes)
        self.assertLessEqual(codes, set(sections("Status codes")))

    def test_every_section_says_what_it_means_and_what_to_do(self):
        for part in RUNBOOK.split("\n### ")[1:]:
            title, text = part.split("\n", 1)
            if title != "OK":
                with self.subTest(section=title):
                    self.assertIn("**Means", text)
                    self.assertRegex(text, r"\*\*Do:\*\*|Nothing to do")

    def test_names_only_metrics_flags_and_log_events_that_there_are(self):
        self.assertLessEqual(metric_names(RUNBOOK), documented_metrics())
        text = sources("engine", "server", "program")
        for event in set(re.findall(r"`event=(\w+)", RUNBOOK)):
            with self.subTest(event=event):
                self.assertRegex(text, rf'"(event=)?{event}[ "]')
        for flag in set(re.findall(r"`(--[a-z-]+)", RUNBOOK)):
            with self.subTest(flag=flag):
                self.assertIn(f'"{flag}"', text)


if __name__ == "__main__":
    unittest.main()
