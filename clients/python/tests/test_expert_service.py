"""ExpertService and routing traces, against the real server."""

import unittest

import tiny_model
from client_test import PROMPT, ClientTest
from switchyard import AccessDeniedError, Client, InvalidRequestError


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


class Experts(ClientTest):
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

    def test_a_profile_tells_which_tokens_come_to_which_expert(self):
        text = "the end and the beginning and the thing in the end\n" * 12
        with Client(f"127.0.0.1:{self.server.admin_port()}", timeout=60) as admin:
            profile = admin.profile_experts(text, min_occurrences=2, most_tokens=3)

        ids = tiny_model.encode(text)
        self.assertEqual((profile.model, profile.tokens, profile.distinct_tokens), ("tiny-moa", len(ids), len(set(ids))))
        self.assertEqual((profile.sequence_tokens, profile.min_occurrences, profile.dtype), (95, 2, "f32"))
        kinds = [(0, "attn"), (0, "ffn"), (1, "attn"), (1, "ffn")]
        self.assertEqual([(r.layer, r.kind) for r in profile.routers], kinds)
        for router in profile.routers:
            self.assertEqual(sum(expert.assignments for expert in router.specialities), 2 * profile.tokens)
            tokens = [token for expert in router.specialities for token in expert.tokens]
            self.assertGreater(len(tokens), 0)
            for token in tokens:
                self.assertGreater(token.information_bits, 0)
                self.assertEqual(token.occurrences, ids.count(token.token_id))

    def test_a_bad_profile_is_an_invalid_request(self):
        with Client(f"127.0.0.1:{self.server.admin_port()}", timeout=60) as admin:
            for text, parameters in (("", {}), ("the end", {"most_tokens": 1025}), ("the end", {"min_occurrences": -1})):
                with self.assertRaises(InvalidRequestError):
                    admin.profile_experts(text, **parameters)

    def test_what_is_for_administrators_is_not_answered_elsewhere(self):
        for call in (self.client.reset_expert_window, lambda: self.client.profile_experts("the end")):
            with self.assertRaises(AccessDeniedError) as refused:
                call()
            self.assertIn("--admin-listen", refused.exception.message)


if __name__ == "__main__":
    unittest.main()
