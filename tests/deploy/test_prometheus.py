"""A real Prometheus scrapes a running server; every expression of the alerts and dashboards is evaluated by it."""

import collections
import json
import re
import subprocess
import unittest

import yaml

import live_prometheus
from live_prometheus import COMPLETIONS, DEPLOY, PROMETHEUS, TOKENS, metric_names

# bible-moa: 4 layers with a router of each kind; 2 of 4 experts for each token.
LAYERS, KINDS, EXPERTS, TOP_K = 4, 2, 4, 2
PROMPT_TOKENS = 5  # of "And the king said", with the token that begins a sequence


def substitute(expression):
    """As Grafana would with everything selected, for scrapes a few times a minute."""
    for variable, value in {
        "$__rate_interval": "1m", "$__range": "1m", "$model": ".*", "$instance": ".*", "$kind": "attn", "$layer": "0",
        "$window": "life",
    }.items():  # fmt: skip
        expression = expression.replace(variable, value)
    assert "$" not in expression, expression
    return expression


def dashboard_expressions():
    """(dashboard, panel, expression) of all panels."""
    for path in sorted((DEPLOY / "grafana").glob("*.json")):
        for panel in json.loads(path.read_text(encoding="utf-8"))["panels"]:
            for target in panel.get("targets", []):
                yield path.name, panel["title"], target["expr"]


def alert_rules():
    groups = yaml.safe_load((DEPLOY / "alerts.yaml").read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def compared(expression):
    """The operands of the comparisons in a rule that are more than a number: all of it but what makes it an alert."""
    sides = re.split(r"\s(?:and|unless|or)\s(?:on\s*\([^)]*\)\s*)?|\s(?:[<>]=?|==|!=)\s", expression)
    return [side.strip() for side in sides if not re.fullmatch(r"[\d.e+-]+", side.strip())]


def adapter_rules():
    return yaml.safe_load((DEPLOY / "prometheus" / "adapter.yaml").read_text(encoding="utf-8"))["rules"]


def autoscaler_metrics():
    """What the HorizontalPodAutoscaler of the kustomizations asks for; the chart's is the same (manifest_checks.py)."""
    scaler = yaml.safe_load((DEPLOY / "kubernetes/base/horizontalpodautoscaler.yaml").read_text(encoding="utf-8"))
    return {metric["pods"]["metric"]["name"] for metric in scaler["spec"]["metrics"]}


def fill_in(template, **fields):
    """As the adapter does with its `<<.Field>>`."""
    for name, value in fields.items():
        template = template.replace(f"<<.{name}>>", value)
    assert "<<" not in template, template
    return template


@unittest.skipIf(PROMETHEUS is None, "no prometheus here; tools/install_dependencies.sh test installs it")
class TestPrometheus(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.live = live_prometheus.LivePrometheus()
        cls.addClassCleanup(cls.live.close)
        samples = [line for line in cls.live.page.splitlines() if line and not line.startswith("#")]
        cls.labels = collections.defaultdict(set)  # name -> sets of label names
        for sample in samples:
            name, labels = re.match(r"(\w+)(?:\{(.*)\})? ", sample).groups()
            cls.labels[name].add(frozenset(re.findall(r'(\w+)="', labels or "")))
        cls.samples = samples

    def test_promtool_finds_nothing_to_mend_on_the_page(self):
        checked = subprocess.run(
            ["promtool", "check", "metrics"], input=self.live.page, capture_output=True, text=True, timeout=60
        )
        self.assertEqual((checked.returncode, checked.stdout + checked.stderr), (0, ""))

    def test_stores_every_series_of_the_page(self):
        self.assertEqual(self.live.number('count({__name__=~"switchyard_.+"})'), len(self.samples))
        # 15 for each router, and 4 more for each expert: docs/metrics.md.
        self.assertEqual(
            self.live.number('count({__name__=~"switchyard_(expert|router)_.+"})'),
            LAYERS * KINDS * (15 + 4 * EXPERTS) - self.absent_figures(),
        )

    def absent_figures(self):
        """Figures over ten minutes and one minute are absent until their windows have work."""
        present = sum(1 for sample in self.samples if 'window="' in sample)
        return LAYERS * KINDS * 4 * 3 - present

    def test_counts_what_was_asked_of_the_server(self):
        live = self.live
        self.assertEqual(live.number("switchyard_ready"), 1)
        self.assertEqual(live.number('switchyard_requests_total{outcome="length"}'), COMPLETIONS)
        self.assertEqual(live.number('sum(switchyard_requests_total{outcome!="length"})'), 0)
        self.assertEqual(live.number("switchyard_generation_tokens_total"), COMPLETIONS * TOKENS)
        self.assertEqual(live.number("sum(switchyard_prompt_tokens_total)"), COMPLETIONS * PROMPT_TOKENS)
        self.assertEqual(live.number("switchyard_time_to_first_token_seconds_count"), COMPLETIONS)
        self.assertEqual(
            live.number('switchyard_inter_token_latency_seconds_bucket{le="+Inf"}'), COMPLETIONS * (TOKENS - 1)
        )
        self.assertEqual(live.number('sum(switchyard_kv_blocks{state="used"})'), 0)

    def test_counts_each_token_at_each_router_and_its_experts(self):
        live = self.live
        # The last token of a completion is never an input.
        decoded = COMPLETIONS * (TOKENS - 1)
        for phase, tokens in (("decode", decoded), ("prefill", None)):
            routed = live.query(f'switchyard_router_tokens_total{{phase="{phase}"}}')
            self.assertEqual(len(routed), LAYERS * KINDS)
            if tokens is None:
                tokens = live.number('switchyard_prompt_tokens_total{source="computed"}')
            self.assertEqual({float(router["value"][1]) for router in routed}, {tokens})
            assigned = live.query(f'sum by (layer, kind) (switchyard_expert_tokens_total{{phase="{phase}"}})')
            self.assertEqual(len(assigned), LAYERS * KINDS)
            self.assertEqual({float(router["value"][1]) for router in assigned}, {tokens * TOP_K})

    def test_loads_the_alerts_and_none_fires_on_a_server_that_is_well(self):
        groups = self.live.api("rules")["groups"]
        rules = {rule["name"]: rule for group in groups for rule in group["rules"]}
        self.assertEqual(set(rules), {rule["alert"] for rule in alert_rules()})
        for name, rule in rules.items():
            with self.subTest(alert=name):
                self.assertEqual((rule["health"], rule.get("lastError", ""), rule["alerts"]), ("ok", "", []))

    def test_every_alert_compares_something_that_there_is(self):
        """A server that is well leaves an alert empty; what it compares must be there all the same. The window of ten minutes has
        nothing yet."""
        for rule in alert_rules():
            for side in compared(rule["expr"].replace('window="10m"', 'window="life"')):
                with self.subTest(alert=rule["alert"], expression=side):
                    self.assertTrue(self.live.query(side))

    def test_the_autoscaler_gets_its_metrics_of_a_pod_through_the_rules_of_the_adapter(self):
        served = {}
        for rule in adapter_rules():
            # Which series there are, as the adapter finds out, and which label names which resource.
            (series,) = self.live.api("series", **{"match[]": rule["seriesQuery"]})
            resources = {target["resource"]: label for label, target in rule["resources"]["overrides"].items()}
            self.assertEqual(set(resources), {"namespace", "pod"})
            self.assertEqual({name: series[label] for name, label in resources.items()}, live_prometheus.POD)
            # What it then asks for two pods in a namespace, of which there is one.
            query = fill_in(
                rule["metricsQuery"], Series=series["__name__"], GroupBy=resources["pod"],
                LabelMatchers=f'{resources["namespace"]}="prod",{resources["pod"]}=~"switchyard-0|switchyard-1"',
            )  # fmt: skip
            (answer,) = self.live.query(query)
            self.assertEqual(answer["metric"], {resources["pod"]: "switchyard-0"})
            served[series["__name__"]] = float(answer["value"][1])
        self.assertEqual(served["switchyard_requests_waiting"], 0)
        self.assertGreater(served["switchyard_kv_cache_usage_ratio"], -1)
        self.assertEqual(set(served), autoscaler_metrics())

    def test_every_panel_shows_something(self):
        for board, title, expression in dashboard_expressions():
            with self.subTest(board=board, panel=title, expression=expression):
                self.assertTrue(self.live.query(substitute(expression)))

    def test_panels_and_alerts_name_only_series_that_there_are(self):
        known = set(self.labels)
        for board, title, expression in dashboard_expressions():
            with self.subTest(board=board, panel=title):
                self.assertLessEqual(metric_names(expression), known)
        for rule in alert_rules():
            with self.subTest(alert=rule["alert"]):
                self.assertLessEqual(metric_names(rule["expr"]), known)
                self.live.query(rule["expr"])  # a ValueError would be a bad expression

    def test_the_alerts_are_tested_with_series_that_look_like_the_servers(self):
        tests = yaml.safe_load((live_prometheus.ROOT / "tests" / "deploy" / "alerts_test.yaml").read_text(encoding="utf-8"))
        tested = set()
        for test in tests["tests"]:
            for series in test["input_series"]:
                name, labels = re.match(r"(\w+)\{(.*)\}$", series["series"]).groups()
                names = set(re.findall(r'(\w+)="', labels)) - {"job", "instance"}
                if name == "up" or (name == "switchyard_ready" and not names):
                    continue
                with self.subTest(series=series["series"]):
                    self.assertIn(frozenset(names), self.labels[name])
            for case in test["alert_rule_test"]:
                if case["exp_alerts"]:
                    tested.add(case["alertname"])
        self.assertEqual(tested, {rule["alert"] for rule in alert_rules()})


if __name__ == "__main__":
    unittest.main()
