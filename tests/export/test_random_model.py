"""The random models have the sizes that were published, and files the exporter reads."""

import contextlib
import io
import json
import unittest.mock
from math import sqrt

import numpy
from export_case import DATA, TOOLS, ExportCase, stored_tensors
from published_sizes import PUBLISHED, rounded

from random_model import command
from random_model.configs import config_of
from random_model.layout import Tensor, key_value_elements, layout
from random_model.random_values import RandomValues
from random_model.shapes import SHAPES, with_layers
from switchyard_export.checkpoint import open_checkpoint
from switchyard_export.families import complete_config, find_family


class Sizes(ExportCase):
    def test_every_published_model_is_there(self):
        self.assertEqual(set(SHAPES) - {"moa-200m-active"}, set(PUBLISHED))

    def test_parameters_and_cache_are_as_published(self):
        for name, (total, active, cached) in PUBLISHED.items():
            with self.subTest(name):
                counted = command.parameters(layout(SHAPES[name]))

                self.assertEqual(rounded(counted[0], total), total)
                self.assertEqual(rounded(counted[1], active), active)
                self.assertEqual(key_value_elements(SHAPES[name]), cached)

    def test_jetmoe_8b_takes_17_gigabytes(self):
        total, _ = command.parameters(layout(SHAPES["jetmoe-8b"]))

        self.assertEqual(2 * total, 17_044_475_904)

    def test_the_configs_agree_with_the_shapes(self):
        for shape in map(with_few_layers, SHAPES.values()):
            with self.subTest(shape.name):
                tensors = {tensor.name: RandomValues(0).stored(tensor) for tensor in layout(shape)}
                family = find_family(tensors, config_of(shape))

                config = complete_config(family, config_of(shape), tensors, "config.json")

                self.assertEqual(family.name, shape.family)
                self.assertEqual(config, config_of(shape))

    def test_a_group_of_layers_stays_whole(self):
        self.assertEqual(with_layers(SHAPES["moeut-44m"], 4).layers, 4)
        with self.assertRaisesRegex(ValueError, "repeats a group of 2 layers; give a multiple"):
            with_layers(SHAPES["moeut-44m"], 5)

    def test_has_the_tensors_that_a_real_checkpoint_of_the_family_has(self):
        real = open_checkpoint(DATA / "molm_identity_kv").tensors
        made = {tensor.name: tensor for tensor in layout(with_layers(SHAPES["molm-350m-4b"], 3))}

        wanted = {name for name in real if not name.endswith((".attn.mask", ".attn.cum_weight"))}
        self.assertEqual(set(made), wanted)
        self.assertEqual({len(made[name].shape) - len(real[name].shape) for name in wanted}, {0})


def with_few_layers(shape):
    return with_layers(shape, shape.stored_layers if shape.stored_layers < shape.layers else 2)


class Values(ExportCase):
    def drawn(self, tensor, seed=1):
        content = b"".join(RandomValues(seed).stored(tensor).chunks())
        return (numpy.frombuffer(content, "<u2").astype(numpy.uint32) << 16).view(numpy.float32)

    def test_matrices_keep_activations_near_one(self):
        for rows in (10, 3000):  # drawn, and cut from the pool
            values = self.drawn(Tensor("w", (rows, 1000), 1000))

            self.assertEqual(values.size, rows * 1000)
            self.assertAlmostEqual(values.std() * sqrt(1000), 1, delta=0.03)

    def test_norms_are_one_and_biases_zero(self):
        self.assertEqual(set(self.drawn(Tensor("n", (5,), 0, 1.0))), {1})
        self.assertEqual(set(self.drawn(Tensor("b", (5,), 0, 0.0))), {0})

    def test_the_seed_and_the_name_decide(self):
        tensor = Tensor("w", (3000, 500), 500)

        self.assertTrue((self.drawn(tensor) == self.drawn(tensor)).all())
        self.assertFalse((self.drawn(tensor) == self.drawn(tensor, seed=2)).all())
        self.assertFalse((self.drawn(tensor) == self.drawn(tensor._replace(name="v"))).all())

    def test_no_two_experts_of_a_router_are_alike(self):
        values = self.drawn(Tensor("router", (155, 412), 412)).reshape(155, 412)

        self.assertEqual(len(numpy.unique(values, axis=0)), 155)


class CommandLine(ExportCase):
    def run_command(self, *arguments):
        out, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            status = command.main([str(argument) for argument in arguments])
        return status, out.getvalue(), errors.getvalue()

    def test_writes_a_model_that_reads_back(self):
        status, _, errors = self.run_command("--shape", "moeut-44m", "--layers", 2, "--output", self.output, "--quiet")

        self.assertEqual((status, errors), (0, ""))
        self.assertEqual(
            {name: list(tensor.shape) for name, tensor in open_checkpoint(self.output).tensors.items()},
            {name: shape for name, (_, shape, _) in stored_tensors(self.output).items()},
        )
        config = json.loads((self.output / "config.json").read_text())
        self.assertEqual(config["transformer.encoder_n_layers"], 2)

    def test_zeros_have_the_true_sizes_and_take_no_disk_space(self):
        status, _, errors = self.run_command("--shape", "jetmoe-8b", "--zeros", "--output", self.output, "--quiet")

        self.assertEqual((status, errors), (0, ""))
        files = [path.stat() for path in self.output.glob("*.safetensors")]
        self.assertGreater(sum(file.st_size for file in files), 17_044_475_904)
        self.assertLess(sum(file.st_blocks * 512 for file in files), 1 << 20)
        tensors = open_checkpoint(self.output).tensors
        self.assertEqual(sum(tensor.elements for tensor in tensors.values()) * 2, 17_044_475_904)
        self.assertEqual(b"".join(tensors["model.norm.weight"].chunks()), bytes(2 * 2048))

    def test_a_dry_run_names_the_shards_and_writes_nothing(self):
        status, out, _ = self.run_command("--shape", "jetmoe-8b", "--dry-run", "--output", self.output)

        self.assertEqual(status, 0)
        self.assertIn("8522.2 M parameters, 2331.3 M active", out)
        self.assertEqual(out.count("-of-00004.safetensors"), 4)
        self.assertFalse(self.output.exists())

    def test_the_list_has_a_line_for_every_shape(self):
        _, out, _ = self.run_command("--list")

        self.assertEqual([line.split()[0] for line in out.splitlines()[1:]], list(SHAPES))

    def test_a_model_that_is_there_is_not_touched(self):
        self.output.mkdir()
        (self.output / "config.json").write_text("mine")

        status, _, errors = self.run_command("--shape", "moeut-44m", "--output", self.output, "--quiet")

        self.assertEqual(status, 1)
        self.assertIn("holds config.json already", errors)

    def test_a_failure_leaves_nothing_behind(self):
        with unittest.mock.patch("switchyard_export.model_folder.write_safetensors", side_effect=OSError("disk full")):
            status, _, _ = self.run_command("--shape", "moeut-44m", "--output", self.output, "--quiet")

        self.assertEqual(status, 1)
        self.assertFalse(self.output.exists())

    def test_the_command_is_a_program(self):
        self.assertTrue((TOOLS / "make_random_model").stat().st_mode & 0o111)
