"""Client for Switchyard, an inference server for sparse-attention language models.

    from switchyard import Client

    with Client("localhost:50051") as client:
        for delta in client.generate("In the beginning", max_tokens=40):
            print(delta.text, end="", flush=True)
"""

from switchyard.client import Client
from switchyard.completion import (
    Choice,
    Completion,
    Delta,
    Logprob,
    RouterTrace,
    RoutingTrace,
    Score,
    Scores,
    Timings,
    TokenLogprobs,
    Usage,
)
from switchyard.errors import (
    AccessDeniedError,
    CancelledError,
    DeadlineError,
    InvalidRequestError,
    ModelNotFoundError,
    OverloadedError,
    ServerError,
    SwitchyardError,
    UnavailableError,
)
from switchyard.model import (
    ExpertCount,
    ExpertStatistics,
    Load,
    ModelInfo,
    Router,
    RouterFigures,
    RouterKind,
    RouterStatistics,
    Tokens,
)
from switchyard.profile import ExpertProfile, ExpertSpeciality, RouterSpecialities, TokenAffinity
from switchyard.stream import GenerationStream

__all__ = [
    "AccessDeniedError",
    "CancelledError",
    "Choice",
    "Client",
    "Completion",
    "DeadlineError",
    "Delta",
    "ExpertCount",
    "ExpertProfile",
    "ExpertSpeciality",
    "ExpertStatistics",
    "GenerationStream",
    "InvalidRequestError",
    "Load",
    "Logprob",
    "ModelInfo",
    "ModelNotFoundError",
    "OverloadedError",
    "Router",
    "RouterFigures",
    "RouterKind",
    "RouterSpecialities",
    "RouterStatistics",
    "RouterTrace",
    "RoutingTrace",
    "Score",
    "Scores",
    "ServerError",
    "SwitchyardError",
    "Timings",
    "TokenAffinity",
    "TokenLogprobs",
    "Tokens",
    "UnavailableError",
    "Usage",
]
