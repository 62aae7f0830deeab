"""The client against the real server with a tiny model."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import grpc
import tiny_model
from certificates import Authority
from switchyard import (
    Client,
    Completion,
    DeadlineError,
    InvalidRequestError,
    ModelNotFoundError,
    OverloadedError,
    SwitchyardError,
    UnavailableError,
)
from switchyard.errors import from_grpc
from switchyard.v1 import error_details_pb2
from switchyard_process import ServerProcess, run

PROMPT = [1, 80, 81, 82]


# Starts a completion, and is gone without a word after its first piece.
DYING_CLIENT = """
import os, sys
from switchyard import Client
next(Client(sys.argv[1]).generate([1, 80], max_tokens=90, ignore_eos=True))
os._exit(0)
"""


class Refusal(grpc.RpcError):
    """What grpcio raises for a server without room."""

    def __init__(self, trailing_metadata):
        super().__init__()
        self._trailing_metadata = trailing_metadata

    def code(self):
        return grpc.StatusCode.RESOURCE_EXHAUSTED

    def details(self):
        return "full"

    def trailing_metadata(self):
        return self._trailing_metadata


class ClientTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        model = tiny_model.write_moa(Path(temporary.name, "tiny-moa"))
        cls.server = ServerProcess(model, "--admin-listen", "127.0.0.1:0")
        cls.addClassCleanup(cls.server.stop)
        cls.client = Client(cls.server.address, timeout=60)
        cls.addClassCleanup(cls.client.close)
        cls.client.wait_until_serving(60)


class Tracing(ClientTest):
    def test_routing_tells_the_experts_of_each_token_but_the_last(self):
        stream = self.client.generate(PROMPT, max_tokens=6, ignore_eos=True, routing=True, bypass_prefix_cache=True)

        done = stream.result()

        self.assertEqual(sum(trace.tokens for trace in done.routing), 9)
        self.assertEqual([r.kind for r in done.routing[0].routers], ["attn", "ffn", "attn", "ffn"])
        for trace in done.routing:
            for router in trace.routers:
                self.assertEqual(len(router.expert_ids), trace.tokens * router.heads * router.top_k)
                self.assertAlmostEqual(sum(router.weights), trace.tokens, places=5)

    def test_one_answer_has_the_routing_of_the_stream(self):
        parameters = {"max_tokens": 6, "temperature": 0, "ignore_eos": True, "routing": True, "bypass_prefix_cache": True}
        streamed = self.client.generate(PROMPT, **parameters).result().routing

        (whole,) = self.client.generate_once(PROMPT, **parameters).routing

        self.assertEqual((whole.first_position, whole.tokens, whole.cached), (0, 9, False))
        ids = [expert for trace in streamed for expert in trace.routers[3].expert_ids]
        self.assertEqual(list(whole.routers[3].expert_ids), ids)

    def test_nothing_is_traced_unless_asked_for(self):
        self.assertEqual(self.client.generate_once(PROMPT, max_tokens=2).routing, ())


class Generating(ClientTest):
    def test_a_stream_ends_with_the_whole_completion(self):
        stream = self.client.generate(PROMPT, max_tokens=20, seed=3, ignore_eos=True)

        deltas = list(stream)

        done = stream.finished
        self.assertIsInstance(done, Completion)
        self.assertEqual(done.text, "".join(delta.text for delta in deltas))
        self.assertEqual(list(done.token_ids), [token_id for delta in deltas for token_id in delta.token_ids])
        self.assertEqual(len(done.token_ids), 20)
        self.assertEqual(done.finish_reason, "length")
        self.assertEqual(done.usage.prompt_tokens, 4)
        self.assertEqual(done.usage.completion_tokens, 20)
        self.assertEqual(done.seed, 3)
        self.assertGreater(done.timings.tokens_per_second(20), 0)

    def test_finished_is_none_while_the_stream_runs(self):
        with self.client.generate(PROMPT, max_tokens=20, ignore_eos=True) as stream:
            next(stream)

            self.assertIsNone(stream.finished)

    def test_once_equals_the_stream(self):
        parameters = dict(max_tokens=15, seed=11, temperature=1.3, top_k=40, logit_bias={70: 1.5})

        streamed = self.client.generate("the thing", **parameters).result()
        once = self.client.generate_once("the thing", **parameters)

        self.assertEqual(once.text, streamed.text)
        self.assertEqual(once.token_ids, streamed.token_ids)

    def test_temperature_0_is_greedy_and_not_unset(self):
        completions = {
            self.client.generate_once(PROMPT, max_tokens=10, temperature=0, seed=seed).token_ids for seed in range(4)
        }

        self.assertEqual(len(completions), 1)

    def test_seeds_tell_completions_apart(self):
        completions = {
            self.client.generate_once(PROMPT, max_tokens=10, temperature=2, seed=seed, ignore_eos=True).token_ids
            for seed in range(4)
        }

        self.assertEqual(len(completions), 4)

    def test_a_stop_token_ends_the_text_before_it(self):
        free = self.client.generate_once(PROMPT, max_tokens=10, temperature=0, ignore_eos=True)
        stop = free.token_ids[4]
        place = free.token_ids.index(stop)

        stopped = self.client.generate_once(PROMPT, max_tokens=10, temperature=0, stop_token_ids=[stop], ignore_eos=True)

        self.assertEqual(stopped.finish_reason, "stop")
        self.assertEqual(stopped.stop_token_id, stop)
        self.assertEqual(stopped.token_ids[:place], free.token_ids[:place])
        self.assertTrue(free.text.startswith(stopped.text))

    def test_a_stop_string_ends_the_text_before_it(self):
        parameters = dict(max_tokens=40, temperature=0, ignore_eos=True, logit_bias={tiny_model.encode("z")[0]: 100})
        free = self.client.generate_once(PROMPT, **parameters)
        self.assertTrue(free.text.startswith("zzzz"))

        stopped = self.client.generate_once(PROMPT, stop_strings=["y", "zzz"], **parameters)

        self.assertEqual(stopped.text, "")
        self.assertEqual(stopped.stop_string, "zzz")
        self.assertEqual(stopped.finish_reason, "stop")

    def test_only_allowed_tokens_come_but_no_bad_words(self):
        allowed = tiny_model.encode("xyz")
        parameters = dict(max_tokens=30, seed=5, temperature=100, ignore_eos=True, allowed_token_ids=allowed)

        free = self.client.generate_once(PROMPT, **parameters)
        restricted = self.client.generate_once(
            PROMPT, bad_words=["x"], bad_word_tokens=[[allowed[1], allowed[1]]], **parameters
        )

        self.assertEqual(set(free.text), set("xyz"))
        self.assertEqual(set(restricted.text), set("yz"))
        self.assertNotIn("yy", restricted.text)

    def test_no_run_of_tokens_comes_twice(self):
        done = self.client.generate_once(PROMPT, max_tokens=60, temperature=0, ignore_eos=True, no_repeat_ngram_size=2)

        tokens = [*PROMPT, *done.token_ids]
        pairs = list(zip(tokens, tokens[1:]))
        self.assertEqual(len(pairs), len(set(pairs)))

    def test_typical_p_leaves_tokens_out(self):
        # The most typical token alone has so small a share.
        completions = {
            self.client.generate_once(PROMPT, max_tokens=1, seed=seed, typical_p=1e-6, ignore_eos=True).token_ids
            for seed in range(8)
        }

        self.assertEqual(len(completions), 1)

    def test_forbidding_everything_is_an_invalid_request(self):
        with self.assertRaises(InvalidRequestError) as raised:
            self.client.generate_once(PROMPT, allowed_token_ids=[70], bad_word_tokens=[[70]])

        self.assertIn("no token is left to choose", raised.exception.message)

    def test_one_bad_word_is_no_list(self):
        with self.assertRaises(TypeError):
            self.client.generate(PROMPT, bad_words="x")

    def test_several_completions_are_those_of_the_next_seeds(self):
        parameters = dict(max_tokens=10, temperature=2, ignore_eos=True)
        stream = self.client.generate(PROMPT, n=3, seed=20, **parameters)

        deltas = list(stream)

        apart = [self.client.generate_once(PROMPT, seed=20 + i, **parameters) for i in range(3)]
        once = self.client.generate_once(PROMPT, n=3, seed=20, **parameters)
        expected = [list(one.token_ids) for one in apart]
        self.assertEqual([list(choice.token_ids) for choice in stream.finished.choices], expected)
        self.assertEqual([list(choice.token_ids) for choice in once.choices], expected)
        for completion in range(3):
            pieces = [delta.token_ids for delta in deltas if delta.completion == completion]
            self.assertEqual([token_id for piece in pieces for token_id in piece], expected[completion])
        self.assertEqual(stream.finished.text, apart[0].text)
        self.assertEqual(stream.finished.usage.completion_tokens, 30)

    def test_the_best_come_first(self):
        done = self.client.generate_once(PROMPT, n=2, best_of=5, seed=1, max_tokens=8, temperature=2, ignore_eos=True)

        self.assertEqual(len(done.choices), 2)
        self.assertGreaterEqual(done.choices[0].logprob_sum, done.choices[1].logprob_sum)

    def test_a_beam_search_finds_what_is_at_least_as_likely_as_greedy(self):
        greedy = self.client.generate_once(PROMPT, max_tokens=8, temperature=0, ignore_eos=True)
        found = self.client.generate(PROMPT, max_tokens=8, beam_width=4, length_penalty=0, ignore_eos=True).result()

        self.assertEqual(len(found.choices), 1)
        self.assertGreaterEqual(found.choices[0].logprob_sum, greedy.choices[0].logprob_sum)

    def test_a_length_penalty_without_a_search_is_a_mistake(self):
        with self.assertRaises(ValueError):
            self.client.generate(PROMPT, length_penalty=2)

    def test_scores_are_the_logprobs_of_generated_tokens(self):
        greedy = self.client.generate_once(PROMPT, max_tokens=5, temperature=0, top_logprobs=1, ignore_eos=True)
        other = [70, 71]

        done = self.client.score(PROMPT, [greedy.token_ids, other], top_logprobs=1)

        self.assertEqual(done.scores[0].logprobs, greedy.logprobs)
        self.assertTrue(done.scores[0].is_greedy)
        self.assertEqual(list(done.scores[1].token_ids), other)
        self.assertEqual(done.usage.completion_tokens, 7)

    def test_texts_are_scored_as_the_rest_of_the_text(self):
        done = self.client.score("the ", ["end", "thing"])

        self.assertEqual([len(score.logprobs) > 0 for score in done.scores], [True, True])
        with self.assertRaises(TypeError):
            self.client.score("the ", "end")

    def test_prompt_logprobs_are_scores_of_the_prompt(self):
        stream = self.client.generate(PROMPT, max_tokens=1, prompt_top_logprobs=2)
        done = stream.result()
        once = self.client.generate_once(PROMPT, max_tokens=1, prompt_top_logprobs=2)

        scored = self.client.score(PROMPT[:1], [PROMPT[1:]], top_logprobs=2)

        self.assertEqual(done.prompt_logprobs, scored.scores[0].logprobs)
        self.assertEqual(once.prompt_logprobs, scored.scores[0].logprobs)

    def test_a_prompt_is_cached_for_its_salt_alone(self):
        prompt = [1, *range(80, 120)]

        def cached(**parameters):
            return self.client.generate_once(prompt, max_tokens=1, priority=3, **parameters).usage.cached_prompt_tokens

        self.assertEqual(cached(cache_salt="a"), 0)
        self.assertGreater(cached(cache_salt="a"), 0)
        self.assertEqual(cached(cache_salt="b"), 0)
        self.assertEqual(cached(cache_salt="a", bypass_prefix_cache=True), 0)

    def test_logprobs_come_with_each_token(self):
        done = self.client.generate_once(PROMPT, max_tokens=5, temperature=0, top_logprobs=3, ignore_eos=True)

        self.assertEqual([token.chosen.token_id for token in done.logprobs], list(done.token_ids))
        for token in done.logprobs:
            self.assertEqual(len(token.top), 3)
            self.assertEqual(token.top[0], token.chosen)  # greedy takes the likeliest
            self.assertLessEqual(token.chosen.logprob, 0)

    def test_echo_tells_the_ids_of_a_text_prompt(self):
        done = self.client.generate_once("the", max_tokens=1, echo_prompt_tokens=True)

        self.assertEqual(list(done.prompt_token_ids), [1, *tiny_model.encode("the")])

    def test_closing_a_stream_frees_the_request(self):
        stream = self.client.generate(PROMPT, max_tokens=90, ignore_eos=True, request_id="again")
        next(stream)
        stream.close()

        self.assertEqual(list(stream), [])
        self.assertIsNone(stream.finished)
        with self.assertRaises(SwitchyardError):
            stream.result()
        self.assertEqual(len(self.client.generate_once(PROMPT, max_tokens=3, ignore_eos=True).token_ids), 3)


class Errors(ClientTest):
    def test_a_bad_value_is_an_invalid_request(self):
        with self.assertRaises(InvalidRequestError) as raised:
            self.client.generate_once(PROMPT, temperature=-1)
        self.assertIn("temperature", raised.exception.message)

        with self.assertRaises(InvalidRequestError):
            list(self.client.generate(PROMPT, top_p=0))

    def test_an_empty_prompt_is_an_invalid_request(self):
        for prompt in ("", []):
            with self.assertRaises(InvalidRequestError):
                self.client.generate_once(prompt)

    def test_another_model_is_not_found(self):
        with Client(self.server.address, model="other") as client:
            with self.assertRaises(ModelNotFoundError) as raised:
                client.model_info()
        self.assertIn("other", raised.exception.message)

    def test_a_timeout_that_has_passed_is_a_deadline_error(self):
        with self.assertRaises(DeadlineError):
            self.client.generate_once(PROMPT, max_tokens=90, ignore_eos=True, timeout=1e-6)

    def test_a_server_that_is_not_there_is_unavailable(self):
        with Client("127.0.0.1:1") as client:
            with self.assertRaises(UnavailableError):
                client.tokenize("x")
            self.assertFalse(client.is_serving())
            with self.assertRaises(DeadlineError):
                client.wait_until_serving(0.05)

    def test_one_stop_string_outside_a_list_is_a_mistake(self):
        with self.assertRaises(TypeError):
            self.client.generate(PROMPT, stop_strings="text")

    def test_a_full_server_says_when_to_come_again(self):
        retry = error_details_pb2.RetryInfo()
        retry.retry_delay.FromMilliseconds(2300)
        details = error_details_pb2.ErrorStatus(code=8, message="full")
        details.details.add(type_url="type.googleapis.com/google.rpc.RetryInfo", value=retry.SerializeToString())

        full = from_grpc(Refusal([("grpc-status-details-bin", details.SerializeToString())]))
        unexplained = from_grpc(Refusal([("other", "x")]))
        garbled = from_grpc(Refusal([("grpc-status-details-bin", b"\xff\xff")]))

        self.assertIsInstance(full, OverloadedError)
        self.assertEqual(full.retry_after_seconds, 2.3)
        self.assertIsNone(unexplained.retry_after_seconds)
        self.assertIsNone(garbled.retry_after_seconds)

    def test_an_error_that_a_retry_does_not_help_says_no_time(self):
        with self.assertRaises(InvalidRequestError) as raised:
            self.client.generate_once(PROMPT, temperature=-1)

        self.assertIsNone(raised.exception.retry_after_seconds)

    def test_every_error_is_a_switchyard_error(self):
        for error in (DeadlineError, InvalidRequestError, ModelNotFoundError, OverloadedError, UnavailableError):
            self.assertTrue(issubclass(error, SwitchyardError))


class Secured(unittest.TestCase):
    def test_a_client_with_certificate_and_key_gets_through(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        folder = Path(temporary.name)
        authority = Authority(folder, "authority")
        certificate, key = authority.issue("server")
        own_certificate, own_key = authority.issue("client")
        made = run("api-key", "--name", "ann")
        (folder / "keys.json").write_text('{"keys": [' + made.stderr.splitlines()[1] + "]}")
        tls = {
            "tls_ca": authority.certificate.read_bytes(),
            "tls_certificate": own_certificate.read_bytes(),
            "tls_key": own_key.read_bytes(),
        }
        server = ServerProcess(
            tiny_model.write_moa(folder / "model"), "--tls-certificate", certificate, "--tls-key", key,
            "--tls-client-ca", authority.certificate, "--api-keys", folder / "keys.json")
        self.addCleanup(server.stop)

        with Client(server.address, timeout=60, api_key=made.stdout.strip(), **tls) as client:
            client.wait_until_serving()
            self.assertEqual(len(client.generate_once(PROMPT, max_tokens=2, ignore_eos=True).token_ids), 2)
            self.assertEqual(len(client.generate(PROMPT, max_tokens=2, ignore_eos=True).result().token_ids), 2)
        with Client(server.address, timeout=60, **tls) as client:
            with self.assertRaises(SwitchyardError) as refused:
                client.load()
            self.assertIn("Bearer KEY", str(refused.exception))
        with Client(server.address, timeout=5) as client:
            self.assertFalse(client.is_serving())


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

    def test_expert_stats_account_for_every_token(self):
        before = self.client.expert_stats(kinds=["attn"]).routers
        self.client.generate_once(PROMPT, max_tokens=6, ignore_eos=True)
        after = self.client.expert_stats(kinds=["attn"]).routers

        # 4 tokens of the prompt and 5 that were generated and then computed; the sixth never is.
        self.assertEqual([r.layer for r in after], [0, 1])
        for old, new in zip(before, after):
            self.assertEqual(new.tokens_routed - old.tokens_routed, 9)
            self.assertEqual(sum(count.tokens for count in new.counts), 2 * new.tokens_routed)

    def test_expert_stats_can_be_asked_for_one_phase(self):
        self.client.generate_once(PROMPT, max_tokens=6, ignore_eos=True)

        warm_up = self.client.expert_stats(layers=[1], kinds=["ffn"], phases=["warm_up"]).routers

        self.assertEqual([(r.layer, r.kind) for r in warm_up], [(1, "ffn")])
        self.assertGreater(warm_up[0].tokens_routed, 0)

    def test_expert_stats_have_figures_of_what_was_routed(self):
        self.client.generate_once(PROMPT, max_tokens=6, ignore_eos=True)

        router = self.client.expert_stats(layers=[0], kinds=["attn"]).routers[0]

        self.assertGreater(router.figures.margin, 0)
        self.assertIsNone(router.figures.drift)
        self.assertAlmostEqual(sum(count.utilization for count in router.counts), 4)
        self.assertEqual(router.head_figures, {})

    def test_a_window_begins_when_it_is_reset(self):
        self.client.generate_once(PROMPT, max_tokens=6, ignore_eos=True)
        with Client(f"127.0.0.1:{self.server.admin_port()}", timeout=60) as admin:
            admin.reset_expert_window()
        empty = self.client.expert_stats(window="reset").routers[0]
        self.client.generate_once(PROMPT, max_tokens=2, ignore_eos=True, bypass_prefix_cache=True)

        router = self.client.expert_stats(window="reset").routers[0]

        self.assertEqual((empty.tokens_routed, empty.figures, empty.counts[0].utilization), (0, None, None))
        self.assertEqual(router.tokens_routed, 5)

    def test_expert_stats_come_as_a_stream_until_it_is_closed(self):
        stream = self.client.stream_expert_stats(interval=0.1, layers=[1], kinds=["ffn"])

        first, second = next(stream), next(stream)
        stream.close()

        self.assertEqual([(r.layer, r.kind) for r in first.routers], [(1, "ffn")])
        self.assertGreater(second.uptime_seconds, first.uptime_seconds)

    def test_a_bad_interval_is_refused(self):
        with self.assertRaises(InvalidRequestError):
            next(self.client.stream_expert_stats(interval=0.001))


if __name__ == "__main__":
    unittest.main()
