"""What a server says of its model and of itself, against the real server."""

import subprocess
import sys
import unittest

import tiny_model
from client_test import ClientTest
from switchyard import InvalidRequestError

# Starts a completion, and is gone without a word after its first piece.
DYING_CLIENT = """
import os, sys
from switchyard import Client
next(Client(sys.argv[1]).generate([1, 80], max_tokens=90, ignore_eos=True))
os._exit(0)
"""


class Facts(ClientTest):
    def test_text_to_tokens_and_back(self):
        text = "the end, 東京 👩‍🚀"

        tokens = self.client.tokenize(text)

        self.assertEqual(list(tokens.ids), [1, *tiny_model.encode(text)])
        self.assertEqual(tokens.pieces[:2], ("<s>", "the"))
        self.assertEqual(self.client.tokenize(text, add_bos=False).ids, tokens.ids[1:])
        self.assertEqual(self.client.detokenize(tokens.ids), text)

    def test_user_text_becomes_control_tokens_only_when_asked(self):
        self.assertNotIn(2, self.client.tokenize("</s>").ids)
        self.assertIn(2, self.client.tokenize("</s>", parse_special_tokens=True).ids)

    def test_model_info_has_dimensions_and_routers(self):
        info = self.client.model_info()

        self.assertEqual(info.name, "tiny-moa")
        self.assertEqual(info.family, "jetmoe")
        self.assertEqual(info.vocabulary_size, 266)
        self.assertEqual(info.context_tokens, 96)
        self.assertEqual(info.kv_bytes_per_token, 256)
        self.assertTrue(info.has_tokenizer)
        self.assertEqual([(r.layer, r.kind) for r in info.routers], [(0, "attn"), (0, "ffn"), (1, "attn"), (1, "ffn")])
        self.assertIn("temperature", info.default_sampling)
        self.assertEqual(info.dtype, "f32")
        self.assertEqual(
            [(k.kind, k.routers, k.heads, k.experts, k.top_k) for k in info.router_kinds],
            [("attn", 2, 1, 4, 2), ("ffn", 2, 1, 4, 2)],
        )
        self.assertFalse(info.has_expert_baseline)

    def test_load_accounts_for_the_blocks_and_the_refused(self):
        with self.assertRaises(InvalidRequestError):
            self.client.generate_once([])

        load = self.client.load()

        self.assertEqual(load.kv_blocks_used + load.kv_blocks_cached + load.kv_blocks_free, load.kv_blocks_total)
        self.assertGreaterEqual(load.refusals_total["invalid"], 1)
        self.assertEqual(load.refusals_total["streams"], 0)

    def test_a_client_that_dies_leaves_nothing_behind(self):
        subprocess.run([sys.executable, "-c", DYING_CLIENT, self.server.address], check=True, timeout=60)

        load = self.client.load()
        while load.open_streams > 0:
            load = self.client.load()

        self.assertEqual(load.running_requests, 0)
        self.assertEqual(load.kv_blocks_used, 0)


if __name__ == "__main__":
    unittest.main()
