"""What Grafana needs of the dashboards in deploy/grafana, which no Grafana reads here."""

import json
import re
import unittest

from live_prometheus import DEPLOY

BOARDS = {path.name: json.loads(path.read_text(encoding="utf-8")) for path in sorted((DEPLOY / "grafana").glob("*.json"))}
GLOBAL_VARIABLES = {"__rate_interval", "__range"}
PANEL_KINDS = {"row", "stat", "timeseries", "heatmap", "table"}


def texts(value):
    """All strings in a JSON value."""
    if isinstance(value, str):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from texts(inner)


class TestDashboards(unittest.TestCase):
    def test_there_is_one_for_serving_and_one_for_experts(self):
        self.assertEqual({board["uid"] for board in BOARDS.values()}, {"switchyard-serving", "switchyard-experts"})

    def test_panels_have_ids_of_their_own_and_do_not_overlap(self):
        for name, board in BOARDS.items():
            panels = board["panels"]
            self.assertEqual(len({panel["id"] for panel in panels}), len(panels), name)
            taken = set()
            for panel in panels:
                place = panel["gridPos"]
                cells = {
                    (x, y)
                    for x in range(place["x"], place["x"] + place["w"])
                    for y in range(place["y"], place["y"] + place["h"])
                }
                with self.subTest(board=name, panel=panel["title"]):
                    self.assertIn(panel["type"], PANEL_KINDS)
                    self.assertLessEqual(place["x"] + place["w"], 24)
                    self.assertFalse(cells & taken)
                taken |= cells

    def test_every_query_names_the_data_source_by_its_variable(self):
        for name, board in BOARDS.items():
            for panel in board["panels"]:
                targets = panel.get("targets", [])
                with self.subTest(board=name, panel=panel["title"]):
                    self.assertEqual(panel["type"] == "row", not targets)
                    self.assertEqual(len({target["refId"] for target in targets}), len(targets))
                    for target in targets:
                        self.assertEqual(target["datasource"], {"type": "prometheus", "uid": "${datasource}"})

    def test_every_variable_that_is_used_is_defined(self):
        for name, board in BOARDS.items():
            defined = {variable["name"] for variable in board["templating"]["list"]}
            used = set(re.findall(r"\$\{?([a-z_]+)", " ".join(texts([board["panels"], board["templating"]]))))
            used -= GLOBAL_VARIABLES | {"__all"}
            self.assertEqual(used, defined, name)

    def test_the_experts_are_shown_layers_against_experts(self):
        matrices = [panel for panel in BOARDS["experts.json"]["panels"] if panel["type"] == "table"]
        self.assertEqual(len(matrices), 2)
        for panel in matrices:
            (change,) = panel["transformations"]
            self.assertEqual(change["id"], "groupingToMatrix")
            self.assertEqual((change["options"]["rowField"], change["options"]["columnField"]), ("layer", "expert"))


if __name__ == "__main__":
    unittest.main()
