"""A client for Tundish: records, changes, charges, credits and webhooks."""

from standardwebhooks import WebhookVerificationError

from .billing import Billing, Credits
from .data import Change, Data, LostCommits, OtherProject, Result
from .http import TundishError
from .webhooks import verify_webhook

__all__ = [
    "Billing",
    "Change",
    "Credits",
    "Data",
    "LostCommits",
    "OtherProject",
    "Result",
    "TundishError",
    "WebhookVerificationError",
    "verify_webhook",
]
