"""Verifies webhooks, which are signed as Standard Webhooks say."""

from typing import Any, Mapping, Union

from standardwebhooks import Webhook


def verify_webhook(secret: str, body: Union[str, bytes], headers: Mapping[str, str]) -> Any:
    """The event of a request, if it is signed with the project's `webhook_secret`. Raises `WebhookVerificationError`."""
    lower = {name.lower(): value for name, value in headers.items()}
    return Webhook(secret).verify(body, lower)
