"""Several completions of a prompt, beam search and scores, against the real server."""

import unittest

from client_test import PROMPT, ClientTest


class SeveralCompletions(ClientTest):
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


if __name__ == "__main__":
    unittest.main()
