"""What can be asked of a generation."""

from __future__ import annotations

from typing import Mapping, Sequence

from switchyard.v1 import inference_pb2


def generation_request(
    prompt: str | Sequence[int],
    *,
    model: str = "",
    request_id: str = "",
    parse_special_tokens: bool | None = None,
    add_bos: bool | None = None,
    temperature: float | None = None,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    typical_p: float | None = None,
    repetition_penalty: float | None = None,
    presence_penalty: float | None = None,
    frequency_penalty: float | None = None,
    seed: int | None = None,
    logit_bias: Mapping[int, float] | None = None,
    no_repeat_ngram_size: int | None = None,
    bad_words: Sequence[str] = (),
    bad_word_tokens: Sequence[Sequence[int]] = (),
    allowed_token_ids: Sequence[int] = (),
    max_tokens: int | None = None,
    min_tokens: int | None = None,
    stop_strings: Sequence[str] = (),
    stop_token_ids: Sequence[int] = (),
    ignore_eos: bool | None = None,
    include_stop: bool | None = None,
    top_logprobs: int | None = None,
    echo_prompt_tokens: bool | None = None,
    prompt_top_logprobs: int | None = None,
    routing: bool | None = None,
    n: int | None = None,
    best_of: int | None = None,
    beam_width: int | None = None,
    length_penalty: float | None = None,
    priority: int | None = None,
    cache_salt: str = "",
    bypass_prefix_cache: bool | None = None,
) -> inference_pb2.GenerateRequest:
    """The request message. None leaves a field out, which means the model's default; 0 is a value.

    prompt: text, or token ids, which are taken as they are.
    request_id: to find the request in the server's log; the server makes one up when empty.
    parse_special_tokens: whether "</s>" in a text becomes that control token; default no.
    add_bos: whether a text gets the beginning-of-sequence token; default as the model does it.
    temperature: 0 to 100; 0 always takes the likeliest token.
    top_k: choose among so many tokens; 0 is all. top_p: among the likeliest with this share together, above 0
    to 1. min_p: leave out tokens less likely than this share of the likeliest, 0 to 1. typical_p: among the tokens
    whose surprise is nearest to the mean with this share together, above 0 to 1.
    repetition_penalty: above 0 to 100, 1 is none. presence_penalty, frequency_penalty: -100 to 100.
    seed: the same seed gives the same completion. logit_bias: token id -> -100 to 100.
    no_repeat_ngram_size: never repeat a run of so many tokens of prompt and completion, 0 to 256; 0 is off.
    bad_words: texts that are never generated, at most 256; bad_word_tokens: the same as sequences of token ids.
    allowed_token_ids: nothing but these tokens is generated, at most 16384; empty is all.
    max_tokens, min_tokens: length of the completion. ignore_eos: go on after an end-of-sequence token.
    stop_strings: at most 16. stop_token_ids: at most 64. include_stop: keep the matched string in the text.
    top_logprobs: 0 to 20; each token comes with its log-probability and so many likeliest ones beside it.
    echo_prompt_tokens: whether the completion tells the ids of the prompt. prompt_top_logprobs: as top_logprobs, for
    the tokens of the prompt from the second on.
    routing: whether the completion tells which experts worked on each token; not with beam_width.
    n: how many completions, 1 to 16; they are in `choices`, and the i-th is what seed + i gives. best_of: sample so
    many and return the n with the highest mean log-probability.
    beam_width: search with so many beams instead of sampling; no sampling parameter may be given then.
    length_penalty: of the search, -10 to 10, above 0 favours long completions; default 1.
    priority: -100 to 100, higher is served first; default 0.
    cache_salt: share cached prompts only with requests of the same salt. bypass_prefix_cache: with nobody.

    The server checks ranges; TypeError or ValueError comes from here for what no message can hold.
    """
    if isinstance(stop_strings, str):
        raise TypeError("stop_strings is a list of strings; write [text] for one")
    if isinstance(bad_words, str):
        raise TypeError("bad_words is a list of strings; write [text] for one")
    if length_penalty is not None and beam_width is None:
        raise ValueError("length_penalty is of a beam search; give beam_width too")
    request = inference_pb2.GenerateRequest(
        request_id=request_id,
        model=model,
        parse_special_tokens=parse_special_tokens,
        add_bos=add_bos,
        sampling=inference_pb2.SamplingParameters(
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            min_p=min_p,
            typical_p=typical_p,
            repetition_penalty=repetition_penalty,
            presence_penalty=presence_penalty,
            frequency_penalty=frequency_penalty,
            seed=seed,
            logit_bias=logit_bias,
            no_repeat_ngram_size=no_repeat_ngram_size,
            bad_words=bad_words,
            bad_word_tokens=[inference_pb2.TokenIds(ids=ids) for ids in bad_word_tokens],
            allowed_token_ids=allowed_token_ids,
        ),
        stopping=inference_pb2.StoppingParameters(
            max_tokens=max_tokens,
            min_tokens=min_tokens,
            stop_strings=stop_strings,
            stop_token_ids=stop_token_ids,
            ignore_eos=ignore_eos,
            include_stop=include_stop,
        ),
        output=inference_pb2.OutputOptions(
            top_logprobs=top_logprobs,
            echo_prompt_tokens=echo_prompt_tokens,
            prompt_top_logprobs=prompt_top_logprobs,
            routing=routing,
        ),
        scheduling=scheduling_options(priority, cache_salt, bypass_prefix_cache),
        n=n,
        best_of=best_of,
    )
    if beam_width is not None:
        request.beam_search.CopyFrom(inference_pb2.BeamSearch(width=beam_width, length_penalty=length_penalty))
    set_prompt(request, prompt)
    return request


def score_request(
    prompt: str | Sequence[int],
    continuations: Sequence[str] | Sequence[Sequence[int]],
    *,
    model: str = "",
    request_id: str = "",
    parse_special_tokens: bool | None = None,
    add_bos: bool | None = None,
    top_logprobs: int | None = None,
    priority: int | None = None,
    cache_salt: str = "",
    bypass_prefix_cache: bool | None = None,
) -> inference_pb2.ScoreRequest:
    """The request message for the likelihood of continuations; parameters are as in generation_request.

    continuations: 1 to 256, all texts or all token ids. A text is the rest of a text that the prompt begins.
    top_logprobs: 0 to 20 of the likeliest tokens at the place of each.
    """
    if isinstance(continuations, str):
        raise TypeError("continuations is a list; write [text] for one")
    request = inference_pb2.ScoreRequest(
        request_id=request_id,
        model=model,
        parse_special_tokens=parse_special_tokens,
        add_bos=add_bos,
        scheduling=scheduling_options(priority, cache_salt, bypass_prefix_cache),
        top_logprobs=top_logprobs,
    )
    for continuation in continuations:
        if isinstance(continuation, str):
            request.continuation_texts.append(continuation)
        else:
            request.continuation_tokens.add(ids=continuation)
    set_prompt(request, prompt)
    return request


def scheduling_options(
    priority: int | None, cache_salt: str, bypass_prefix_cache: bool | None
) -> inference_pb2.SchedulingOptions:
    return inference_pb2.SchedulingOptions(
        priority=priority, cache_salt=cache_salt, bypass_prefix_cache=bypass_prefix_cache
    )


def set_prompt(request, prompt: str | Sequence[int]) -> None:
    if isinstance(prompt, str):
        request.prompt_text = prompt
    else:
        request.prompt_tokens.ids.extend(prompt)
        request.prompt_tokens.SetInParent()  # so that an empty list is an empty prompt, not an absent one
