"""The four expert layers of the demo models, each written to be read beside its paper.

Glossary of shapes:
  tokens      windows * window_tokens; rows of a batch, window after window
  dim         width of the residual stream
  experts     number of experts (of a head, in SwitchHead); chosen = how many of them work on a token
Training runs the large products in bfloat16 (torch.autocast in train.py); routers stay in float32,
because a rounded router logit can swap two experts.
"""

import math

import torch
from torch import nn
from torch.nn import functional

QUERY_BLOCK = 128  # queries that share one product with the keys before them; see causal_attention


def parameter(*shape, deviation):
    return nn.Parameter(torch.randn(shape) * deviation)


class RmsNorm(nn.Module):
    """x / sqrt(mean(x^2) + epsilon) * weight, over the last axis."""

    def __init__(self, dim, epsilon):
        super().__init__()
        self.weight, self.epsilon = nn.Parameter(torch.ones(dim)), epsilon

    def forward(self, x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.epsilon) * self.weight


def rotate(x, positions, rotated, base):
    """Rotary position embedding of the first `rotated` channels, in pairs (i, i + rotated/2).

    x [..., window_tokens, heads, head_dim]. Angle of pair i at position p: p * base^(-2 i / rotated).
    """
    half = rotated // 2
    angle = positions[:, None, None] * base ** (-torch.arange(half) * 2.0 / rotated)
    cosine, sine = angle.cos().to(x.dtype), angle.sin().to(x.dtype)  # [window_tokens, 1, half]
    first, second, rest = x[..., :half], x[..., half:rotated], x[..., rotated:]
    return torch.cat([first * cosine - second * sine, second * cosine + first * sine, rest], -1)


def causal_attention(query, key, value, queries_per_key):
    """softmax(query . key) . value over the keys up to each query's own position; scaling is the caller's.

    query [streams, window_tokens * queries_per_key, head_dim], position-major; key, value [streams,
    window_tokens, head_dim]. Works in blocks of queries: a block multiplies only the keys up to its own
    end, so nearly half of the square of scores is never computed.
    """
    window_tokens = key.shape[1]
    outputs = []
    for block in query.split(QUERY_BLOCK * queries_per_key, dim=1):
        start = len(outputs) * QUERY_BLOCK
        end = min(start + QUERY_BLOCK, window_tokens)
        scores = torch.bmm(block, key[:, :end].transpose(1, 2))
        position = torch.arange(start, end).repeat_interleave(queries_per_key)
        hidden = torch.arange(end)[None, :] > position[:, None]
        penalty = torch.zeros(hidden.shape, dtype=scores.dtype).masked_fill(hidden, -math.inf)
        outputs.append(torch.bmm(torch.softmax(scores + penalty, -1), value[:, :end]))
    return torch.cat(outputs, 1)


class Router(nn.Module):
    """Chooses `chosen` of `experts` for every token and group: r = x . weight^T, the largest logits win.

    groups is the number of heads that route on their own (1 for MoA and the feed-forward layers).
    weighting "softmax": softmax over the chosen logits (JetMoE). "sigmoid": each on its own (SwitchHead).
    Returns ids and weights, [tokens, groups, chosen].

    balance_loss of the last call keeps all experts in use. softmax: experts * sum_e f_e p_e, with f_e the
    share of choices that fell on expert e and p_e its mean probability; 1 when balanced. sigmoid: the
    log of `experts` minus the entropy of the mean selection distribution; 0 when balanced.
    """

    def __init__(self, dim, experts, chosen, groups, weighting):
        super().__init__()
        self.weight = parameter(groups * experts, dim, deviation=dim**-0.5)
        self.experts, self.chosen, self.groups, self.weighting = experts, chosen, groups, weighting
        self.balance_loss = torch.zeros(())
        self.selection_counts = torch.zeros(groups, experts)  # counts in eval mode only

    def forward(self, x):
        with torch.autocast("cpu", enabled=False):
            logits = functional.linear(x.float(), self.weight).view(-1, self.groups, self.experts)
            chosen_logits, ids = logits.topk(self.chosen, dim=-1)
            if self.weighting == "softmax":
                weights = chosen_logits.softmax(-1)
            else:
                weights = chosen_logits.sigmoid()
            if self.training:
                self.balance_loss = self._balance_loss(logits, ids)
            else:
                self.selection_counts += self._counts(ids)
        return ids, weights

    def _counts(self, ids):
        slots = ids + torch.arange(self.groups)[:, None] * self.experts
        counts = torch.bincount(slots.flatten(), minlength=self.groups * self.experts)
        return counts.view(self.groups, self.experts).float()

    def _balance_loss(self, logits, ids):
        mean_probability = logits.softmax(-1).mean(0)  # [groups, experts]
        if self.weighting == "softmax":
            share = self._counts(ids) / (ids.shape[0] * self.chosen)
            return self.experts * (share * mean_probability).sum(-1).mean()
        entropy = -(mean_probability * mean_probability.clamp_min(1e-9).log()).sum(-1)
        return (math.log(self.experts) - entropy).mean()


def dense_gates(ids, weights, experts):
    """The weights laid out over all experts, 0 for those not chosen: [tokens, groups, experts]."""
    return torch.zeros(*ids.shape[:2], experts).scatter(-1, ids, weights)


def sum_slots(pairs, slots):
    """[tokens * slots, width] -> [tokens, width]; adding whole slices is faster than a reduction over 2."""
    return sum(slot.float() for slot in pairs.view(-1, slots, pairs.shape[-1]).unbind(1))


class GroupRows(torch.autograd.Function):
    """Copies x[row // copies] for row in order: the rows of one expert come to lie together.

    Both directions are plain row copies, which is much faster than the general scatter that autograd
    would use for indexing, since it cannot know that `order` is a permutation.
    """

    @staticmethod
    def forward(context, x, order, copies):
        context.order, context.copies = order, copies
        return x.index_select(0, order // copies)

    @staticmethod
    def backward(context, gradient):
        inverse = torch.empty_like(context.order)
        inverse[context.order] = torch.arange(len(inverse))
        rows = gradient.index_select(0, inverse)
        return sum_slots(rows, context.copies), None, None


class ExpertGroups:
    """The (token, slot) pairs of a batch sorted by expert, so that each expert runs as one matmul."""

    def __init__(self, ids, experts):
        flat = ids.flatten()  # [tokens * chosen]; pair = token * chosen + slot
        self.chosen = ids.shape[-1]
        self.order = flat.argsort(stable=True)
        self.inverse = torch.empty_like(self.order)
        self.inverse[self.order] = torch.arange(len(flat))
        self.counts = torch.bincount(flat, minlength=experts).tolist()

    def gather_tokens(self, x):  # [tokens, width] -> [pairs, width], sorted by expert
        return GroupRows.apply(x, self.order, self.chosen)

    def gather_pairs(self, x):  # [pairs, width] in token order -> sorted by expert
        return GroupRows.apply(x, self.order, 1)

    def to_token_order(self, x):  # the inverse of gather_pairs
        return GroupRows.apply(x, self.inverse, 1)

    def linear(self, x, weight):
        """x [pairs, in], weight [experts, out, in] -> [pairs, out]; rows of expert e use weight[e]."""
        parts = zip(x.split(self.counts), weight.unbind())
        return torch.cat([functional.linear(rows, matrix) for rows, matrix in parts])


class MixtureOfAttention(nn.Module):
    """MoA attention as in JetMoE: experts hold query and output projections; keys and values are shared.

    slots j = 1 .. k, expert e_j and gate g_j from the router;  g = softmax over the k logits
    q_j = Wq[e_j] x                                  [kv_heads, head_dim]
    K = Wk x, V = Wv x                               [kv_heads, head_dim], one for all experts
    o_j = concat_h attention(q_j[h], K[h], V[h])     rotary on q and K, scale 1/sqrt(head_dim)
    y = sum_j g_j Wo[e_j] o_j + bias
    """

    def __init__(self, dim, kv_heads, head_dim, experts, chosen, rope_base):
        super().__init__()
        width = kv_heads * head_dim
        self.kv_heads, self.head_dim, self.chosen, self.rope_base = kv_heads, head_dim, chosen, rope_base
        self.router = Router(dim, experts, chosen, 1, "softmax")
        self.query = parameter(experts, width, dim, deviation=dim**-0.5)  # out, in
        self.output = parameter(experts, dim, width, deviation=0.5 * width**-0.5)
        self.bias = nn.Parameter(torch.zeros(dim))
        self.key_value = parameter(2 * width, dim, deviation=dim**-0.5)  # keys, then values

    def forward(self, x, windows):
        """x [tokens, dim] -> [tokens, dim]."""
        ids, gates = self.router(x)
        groups = ExpertGroups(ids, self.router.experts)
        heads, head_dim, slots = self.kv_heads, self.head_dim, self.chosen
        window_tokens = x.shape[0] // windows
        positions = torch.arange(window_tokens)

        query = groups.to_token_order(groups.linear(groups.gather_tokens(x), self.query))
        query = query.view(windows, window_tokens, slots * heads, head_dim)
        query = rotate(query, positions, head_dim, self.rope_base) * head_dim**-0.5
        key_value = functional.linear(x, self.key_value)
        key, value = key_value.view(windows, window_tokens, 2, heads, head_dim).unbind(2)
        key = rotate(key, positions, head_dim, self.rope_base)

        # A KV head serves the same head of every slot: the slots join the query positions as rows.
        query = query.view(windows, window_tokens, slots, heads, head_dim).permute(0, 3, 1, 2, 4)
        streams = lambda shared: shared.transpose(1, 2).reshape(windows * heads, window_tokens, head_dim)
        attended = causal_attention(
            query.reshape(windows * heads, window_tokens * slots, head_dim),
            streams(key),
            streams(value),
            slots,
        )
        attended = attended.view(windows, heads, window_tokens, slots, head_dim).permute(0, 2, 3, 1, 4)

        # The gate is a number per pair, so it may scale the pair before the output matmul as well as after.
        pairs = attended.reshape(-1, heads * head_dim) * gates.view(-1, 1).to(attended.dtype)
        updates = groups.to_token_order(groups.linear(groups.gather_pairs(pairs), self.output))
        return sum_slots(updates, slots) + self.bias


class GatedExpertFeedForward(nn.Module):
    """JetMoE's feed-forward: y = sum_j g_j Wout[e_j] (silu(u1) * u2) + bias, with [u1; u2] = Win[e_j] x."""

    def __init__(self, dim, hidden, experts, chosen):
        super().__init__()
        self.router = Router(dim, experts, chosen, 1, "softmax")
        self.input = parameter(experts, 2 * hidden, dim, deviation=dim**-0.5)
        self.output = parameter(experts, dim, hidden, deviation=0.5 * hidden**-0.5)
        self.bias = nn.Parameter(torch.zeros(dim))

    def forward(self, x, windows):
        ids, gates = self.router(x)
        groups = ExpertGroups(ids, self.router.experts)
        activated, linear = groups.linear(groups.gather_tokens(x), self.input).chunk(2, dim=-1)
        pair_gates = groups.gather_pairs(gates.view(-1, 1)).to(linear.dtype)
        hidden = functional.silu(activated) * linear * pair_gates
        updates = groups.to_token_order(groups.linear(hidden, self.output))
        return sum_slots(updates, ids.shape[-1]) + self.bias


class SwitchHeadAttention(nn.Module):
    """SwitchHead: ordinary heads whose value and output projections are mixtures of experts.

      per head h:  s = sigmoid of the k largest of (x . Sv[h]^T),  t likewise from So[h]
      V[h] = sum_e s_e (x . Wv[h, e])                  the router of the *cached* token decides
      o[h] = attention(q[h], K[h], V[h])               q = x Wq^T, K = x Wk^T, both * head_dim^(-1/4)
      y = sum_h sum_e t_e (o[h] . Wo[h, e])            the router of the querying token decides
    The first half of the channels of q and K is rotated.
    """

    def __init__(self, dim, heads, head_dim, experts, chosen, rope_base, rotated):
        super().__init__()
        self.heads, self.head_dim, self.experts = heads, head_dim, experts
        self.rope_base, self.rotated = rope_base, rotated
        self.query = parameter(heads * head_dim, dim, deviation=dim**-0.5)  # out, in
        self.key = parameter(heads * head_dim, dim, deviation=dim**-0.5)
        self.value = parameter(heads * experts, dim, head_dim, deviation=dim**-0.5)  # in, out
        self.output = parameter(heads * experts, head_dim, dim, deviation=0.5 * (heads * head_dim) ** -0.5)
        self.value_router = Router(dim, experts, chosen, heads, "sigmoid")
        self.output_router = Router(dim, experts, chosen, heads, "sigmoid")

    def forward(self, x, windows):
        """x [tokens, dim] -> [tokens, dim]. All experts of a head are computed and those not chosen
        weighted 0: with so few and narrow ones, one wide matmul beats sorting the rows of every head."""
        tokens, dim = x.shape
        heads, head_dim, experts, window_tokens = self.heads, self.head_dim, self.experts, tokens // windows
        positions = torch.arange(window_tokens)
        value_gates = dense_gates(*self.value_router(x), experts)  # [tokens, heads, experts]
        output_gates = dense_gates(*self.output_router(x), experts)

        def streams(rows):  # [tokens, heads * head_dim] -> [windows * heads, window_tokens, head_dim]
            rows = rows.view(windows, window_tokens, heads, head_dim).transpose(1, 2)
            return rows.reshape(windows * heads, window_tokens, head_dim)

        def positioned(rows):
            rows = rows.view(windows, window_tokens, heads, head_dim) * head_dim**-0.25
            return rotate(rows, positions, self.rotated, self.rope_base)

        query, key = functional.linear(x, self.query), functional.linear(x, self.key)
        values = torch.mm(x, self.value.permute(1, 0, 2).reshape(dim, -1))  # of all experts
        values = values.view(tokens, heads, experts, head_dim)
        value = (values * value_gates[..., None].to(values.dtype)).sum(2)
        attended = causal_attention(streams(positioned(query)), streams(positioned(key)), streams(value), 1)
        attended = attended.view(windows, heads, window_tokens, head_dim).transpose(1, 2)
        spread = attended.reshape(tokens, heads, 1, head_dim) * output_gates[..., None].to(attended.dtype)
        return torch.mm(spread.reshape(tokens, -1), self.output.view(-1, dim)).float()


class SigmaMoe(nn.Module):
    """sigma-MoE: y = sum_j s_j relu(x . keys[e_j]) . values[e_j], with s = sigmoid of the k largest logits.

    As in SwitchHeadAttention all experts are computed as one wide layer, the idle ones weighted 0.
    """

    def __init__(self, dim, hidden, experts, chosen):
        super().__init__()
        self.router = Router(dim, experts, chosen, 1, "sigmoid")
        self.keys = parameter(experts, dim, hidden, deviation=dim**-0.5)  # in, out
        self.values = parameter(experts, hidden, dim, deviation=(chosen * hidden) ** -0.5)

    def forward(self, x, windows):
        experts, dim, hidden = self.keys.shape
        gates = dense_gates(*self.router(x), experts).view(-1, experts, 1)
        activated = functional.relu(torch.mm(x, self.keys.permute(1, 0, 2).reshape(dim, -1)))
        weighted = activated.view(-1, experts, hidden) * gates.to(activated.dtype)
        return torch.mm(weighted.view(-1, experts * hidden), self.values.view(-1, dim)).float()
