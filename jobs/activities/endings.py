"""How every content workflow ends: the last step, and the two finalizers.

Guarantees: a result is published once; a round that is over already counts as done. Leaves to
others: making the composition that is published.
"""

from typing import Any

from jobs.activities.requests import artifact_of, request_of
from jobs.plans import ContentInput
from jobs.services import rounds
from kernel import ActivityContext, FinalizerContext, NonRetryable


def finalize(ctx: ActivityContext) -> dict[str, Any]:
    """Check that there is a result to give, and hand on the client's own object.

    Raises:
        NonRetryable: the summary is empty or gone.
    """
    request = request_of(ctx, ContentInput)
    rounds.enter_generating(request.job_id, ctx.fencing_token)
    composition = artifact_of(request.job_id, ctx.output("compose"), what="composition")
    if not composition.text.strip():
        raise NonRetryable("the summary is empty", code="empty_result")
    return {"artifact": composition.pk, "metadata": request.metadata}


def settle(ctx: FinalizerContext) -> None:
    """Success finalizer: publish the result. On repeat, and when the round is over: nothing."""
    job_id, output = _job_id(ctx), ctx.outputs["finalize"]
    composition = rounds.get_artifact(job_id, output["artifact"])
    if composition is None:
        # Artifacts go with their job only, so nobody is left to be told.
        ctx.log.warning("job %s is gone; its result is dropped", job_id)
        return
    details = composition.details
    chosen = next(
        (c for c in details.get("candidates", ()) if c["option"] == output.get("option")),
        {"summary": composition.text, "sentences": details.get("sentences")},
    )
    rounds.finish_ready(
        job_id,
        ctx.fencing_token,
        title=details["title"],
        result={
            "summary": chosen["summary"],
            "sentences": chosen["sentences"],
            "source_words": details["source_words"],
            "model": details["model"],
            "final_url": details["final_url"],
            "language": details["language"],
            "metadata": output["metadata"],
            **{name: details[name] for name in ("transcript",) if name in details},
            **{name: output[name] for name in ("option",) if name in output},
        },
    )


def give_up(ctx: FinalizerContext) -> None:
    """Failure finalizer: tell the client why. On repeat, and when the round is over: nothing."""
    error = ctx.error or {}
    rounds.finish_failed(
        _job_id(ctx),
        ctx.fencing_token,
        code=str(error.get("code") or "failed"),
        message=str(error.get("message") or "The workflow failed."),
    )


def _job_id(ctx: FinalizerContext) -> str:
    job_id = ctx.input["job_id"] if isinstance(ctx.input, dict) else ctx.input.job_id
    assert isinstance(job_id, str), "every content workflow works for a job"
    return job_id
