"""Generate and GenerateOnce of one completion, against the real server."""

import unittest

import tiny_model
from client_test import PROMPT, ClientTest
from switchyard import Completion, InvalidRequestError, SwitchyardError


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


if __name__ == "__main__":
    unittest.main()
