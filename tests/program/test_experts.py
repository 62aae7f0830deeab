"""`experts`: what a running server's experts did, what a model's experts specialise in, and drift from a baseline."""

import json
import signal
import subprocess
import tempfile
import unittest
import urllib.request
from html.parser import HTMLParser
from pathlib import Path

import tiny_model
from switchyard_process import PROGRAM, ServerProcess, run

DEMO_MODELS = Path(__file__).resolve().parents[2] / "models"
DATA = Path(__file__).resolve().parent / "data"
TEXT = "the end and the beginning and the thing in the end\n" * 12


class PageReader(HTMLParser):
    """Collects what a page links to, and its chips."""

    def __init__(self):
        super().__init__()
        self.links, self.chips = [], 0

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.links += [value for name, value in attributes.items() if name in ("href", "src")]
        self.chips += attributes.get("class") == "chip"


class Experts(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        self.text = self.folder / "text"
        self.text.write_text(TEXT, encoding="utf-8")

    def succeed(self, *arguments):
        result = run("experts", *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def profile(self, model, text=None, *flags):
        return json.loads(self.succeed("--model", model, "--profile", text or self.text, "--output", "json", *flags))

    def test_a_profile_accounts_for_every_choice(self):
        for model in (tiny_model.write_moa(self.folder / "moa"), tiny_model.write_switchhead(self.folder / "sh")):
            report = self.profile(model, None, "--min-count", 1)

            self.assertEqual(report["tokens"], len(tiny_model.encode(TEXT)))
            self.assertEqual(report["distinct_tokens"], len(set(tiny_model.encode(TEXT))))
            self.assertGreater(len(report["routers"]), 0)
            for router in report["routers"]:
                choices = sum(expert["assignments"] for expert in router["specialities"])
                self.assertEqual(choices, report["tokens"] * router["heads"] * router["top_k"])
                self.assertAlmostEqual(sum(e["share"] for e in router["specialities"]), router["heads"], places=9)

    def test_a_profile_is_a_table_or_a_page_of_its_own(self):
        model = tiny_model.write_moa(self.folder / "moa")

        table = self.succeed("--model", model, "--profile", self.text)
        page = self.succeed("--model", model, "--profile", self.text, "--output", "html")

        self.assertIn("layer 0 attn, 2 of 4\n", table)
        self.assertIn("layer 1 ffn, 2 of 4\n", table)
        reader = PageReader()
        reader.feed(page)
        self.assertEqual(reader.links, [])
        self.assertGreater(reader.chips, 0)

    def test_a_servers_profile_is_that_of_its_model(self):
        # 1740 tokens: 18 sequences of the context of 96, and a shorter one.
        long_text = self.folder / "long"
        long_text.write_text(TEXT * 5, encoding="utf-8")
        for model in (tiny_model.write_moa(self.folder / "moa"), tiny_model.write_switchhead(self.folder / "sh")):
            with ServerProcess(model, "--admin-listen", "127.0.0.1:0") as server:
                run("health", "--server", server.address, "--wait", "60")
                admin = f"127.0.0.1:{server.admin_port()}"
                for output in ("json", "table", "html"):
                    flags = ("--profile", long_text, "--output", output, "--min-count", 2, "--top", 5)
                    self.assertEqual(
                        self.succeed("--server", admin, *flags),
                        self.succeed("--model", model, "--threads", 1, *flags),
                    )
                elsewhere = run("experts", "--server", server.address, "--profile", long_text)
                live = json.loads(self.succeed("--server", server.address, "--output", "json"))

            self.assertNotEqual(elsewhere.returncode, 0)
            self.assertIn("--admin-listen", elsewhere.stderr)
            self.assertEqual(live["tokens_routed"]["prefill"], 0)
            self.assertGreater(live["tokens_routed"]["warm-up"], len(tiny_model.encode(TEXT * 5)))

    def test_a_window_is_reset_at_the_admin_address(self):
        model = tiny_model.write_moa(self.folder / "moa")
        with ServerProcess(model, "--admin-listen", "127.0.0.1:0") as server:
            run("health", "--server", server.address, "--wait", "60")
            run("generate", "--server", server.address, "--prompt", "the end", "--max-tokens", "2")
            admin = f"127.0.0.1:{server.admin_port()}"

            printed = self.succeed("--server", admin, "--reset")
            since = json.loads(self.succeed("--server", server.address, "--window", "reset", "--json"))
            life = json.loads(self.succeed("--server", server.address, "--json"))
            elsewhere = run("experts", "--server", server.address, "--reset")

        self.assertEqual(printed, "--window reset begins now\n")
        self.assertEqual(since["tokens_routed"]["prefill"], 0)
        self.assertGreater(life["tokens_routed"]["prefill"], 0)
        self.assertNotEqual(elsewhere.returncode, 0)
        self.assertIn("--admin-listen", elsewhere.stderr)

    def test_a_heat_map_is_drawn_anew_as_tokens_come(self):
        model = tiny_model.write_moa(self.folder / "moa")
        with ServerProcess(model) as server:
            run("health", "--server", server.address, "--wait", "60")
            command = [PROGRAM, "experts", "--server", server.address, "--watch", "--interval", "0.1"]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watch:
                self.addCleanup(watch.kill)
                line = next(watch.stdout)
                self.assertTrue(line.startswith("model moa"), line)
                before = next(line for line in watch.stdout if line.startswith("  layer 0"))
                run("generate", "--server", server.address, "--prompt", "the end", "--max-tokens", "2")
                after = next(line for line in watch.stdout if line.startswith("  layer 0") and line != before)
                watch.send_signal(signal.SIGINT)

        self.assertRegex(after, r"^  layer 0 +(\d\.\d\d +)+\d\.\d\d of \d, margin \d\.\d\d$")
        self.assertEqual(watch.returncode, -signal.SIGINT)

    def test_what_does_not_go_together_is_refused(self):
        model = tiny_model.write_moa(self.folder / "moa")
        for arguments, message in (
            ([], "1"),
            (["--model", model], "--profile"),
            (["--profile", self.text], "1"),
            (["--model", model, "--profile", self.text, "--reset"], "--reset"),
            (["--server", "127.0.0.1:1", "--profile", self.text, "--reset"], "--reset"),
            (["--server", "127.0.0.1:1", "--profile", self.text, "--save-baseline", self.folder / "b"], "--save-baseline"),
            (["--server", "127.0.0.1:1", "--profile", self.folder / "none"], "none: cannot be read"),
            (["--server", "127.0.0.1:1", "--output", "html"], "--output html is of --profile"),
            (["--model", model, "--profile", self.folder / "none"], "none: cannot be read"),
        ):
            result = run("experts", *arguments)
            self.assertNotEqual(result.returncode, 0, arguments)
            self.assertIn(message, result.stderr, arguments)

    def test_drift_is_none_from_a_baseline_of_the_same_text(self):
        model = tiny_model.write_moa(self.folder / "moa")
        baseline = self.folder / "baseline.json"
        self.succeed("--model", model, "--profile", self.text, "--save-baseline", baseline)
        tokens = tiny_model.encode(TEXT)[:95]

        with ServerProcess(model, "--expert-baseline", baseline, "--http", "127.0.0.1:0") as server:
            run("health", "--server", server.address, "--wait", "60")
            run("generate", "--server", server.address, "--prompt", TEXT[:150], "--max-tokens", "1")
            live = json.loads(self.succeed("--server", server.address, "--output", "json"))
            live_baseline = self.folder / "live.json"
            table = self.succeed("--server", server.address, "--save-baseline", live_baseline)
            with urllib.request.urlopen(f"http://127.0.0.1:{server.http_port()}/metrics", timeout=60) as page:
                metrics = page.read().decode()

        # Half of the text's tokens have nearly the shares of all of them.
        self.assertGreater(len(tokens), 0)
        for router in live["routers"]:
            self.assertGreaterEqual(router["figures"]["drift"], 0)
            self.assertLess(router["figures"]["drift"], 0.05)
        self.assertIn("drift", table)
        self.assertIn('switchyard_expert_drift{model="moa",layer="0",kind="attn",window="life"}', metrics)
        kept = json.loads(live_baseline.read_text())
        self.assertEqual([sum(r["loads"]) for r in kept["routers"]], [2 * live["routers"][0]["tokens_routed"]] * 4)

    def test_a_bad_baseline_stops_the_server_at_its_start(self):
        model = tiny_model.write_moa(self.folder / "moa")
        other = tiny_model.write_switchhead(self.folder / "sh")
        foreign = self.folder / "foreign.json"
        self.succeed("--model", other, "--profile", self.text, "--save-baseline", foreign)
        broken = self.folder / "broken.json"
        broken.write_text("{}")
        for path, message in (
            (foreign, "make"),
            (broken, "broken.json: is no expert baseline"),
            (self.folder / "none", "none: cannot be read"),
        ):
            result = run("serve", "--model", model, "--listen", "127.0.0.1:0", "--expert-baseline", path)
            self.assertNotEqual(result.returncode, 0)
            self.assertIn(message, result.stderr)

    def test_a_trace_tells_the_experts_of_each_token(self):
        model = tiny_model.write_moa(self.folder / "moa")
        trace = self.folder / "trace"

        result = run("generate", "--model", model, "--prompt", "the end", "--max-tokens", "4", "--trace-routing", trace)

        self.assertEqual(result.returncode, 0, result.stderr)
        runs = [json.loads(line) for line in trace.read_text().splitlines()]
        position = 0
        for entry in runs:
            self.assertEqual(entry["first_position"], position)
            position += entry["tokens"]
            for router in entry["routers"]:
                self.assertEqual(len(router["expert_ids"]), entry["tokens"] * router["top_k"])
        self.assertGreaterEqual(position, 1 + len(tiny_model.encode("the end")))


class DemoModel(unittest.TestCase):
    """The bundled model, routed on the reference backend, whose results no instruction set changes."""

    def test_a_small_text_has_the_profile_that_it_had(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        text = Path(temporary.name, "chapter")
        text.write_text((DEMO_MODELS / "held_out.txt").read_text(encoding="utf-8")[:3000], encoding="utf-8")
        for model in ("bible-moa", "bible-switchhead"):
            result = run(
                "experts", "--model", DEMO_MODELS / model, "--profile", text, "--output", "json",
                "--device", "reference", "--min-count", "4", "--top", "2",
            )
            self.assertEqual(result.returncode, 0, result.stderr)
            report = json.loads(result.stdout)
            lines = [
                f"{router['layer']} {router['kind']} {expert['head']} {expert['expert']} {expert['assignments']} "
                + " ".join(f"{token['piece']}:{token['information_bits']:.3f}" for token in expert["tokens"])
                for router in report["routers"]
                for expert in router["specialities"]
            ]
            expected = (DATA / f"profile_of_{model}.txt").read_text(encoding="utf-8")
            self.assertEqual("\n".join(line.rstrip() for line in lines) + "\n", expected, model)


if __name__ == "__main__":
    unittest.main()
