"""Timeouts and retry policies the content workflows share.

Guarantees: one place to change them; none is part of a definition's fingerprint, so they may change
while instances run. Leaves to others: which step has which.
"""

from kernel import RetryPolicy

#: Seconds of one call.
BUSINESS_TIMEOUT = 30
FETCH_TIMEOUT = 60
RECORDING_TIMEOUT = 120
#: One submission or one question, never the wait.
TRANSCRIBE_TIMEOUT = 300
COMPOSE_TIMEOUT = 300
FANOUT_TIMEOUT = 60

#: For steps that only touch the business database.
BUSINESS = RetryPolicy(max_retry=4, backoff="exponential", initial=0.5, cap=30)
FETCH = RetryPolicy(max_retry=4, backoff="exponential", initial=1, cap=60)
TRANSCRIBE = RetryPolicy(max_retry=5, backoff="exponential", initial=2, cap=60)
COMPOSE = RetryPolicy(max_retry=5, backoff="exponential", initial=2, cap=120)
#: For steps nobody else does when they fail: they go on trying for days.
PATIENT = RetryPolicy(max_retry=200, backoff="exponential", initial=1, cap=600)
