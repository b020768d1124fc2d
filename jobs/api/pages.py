"""The documentation pages behind the ``type`` URLs of problems.

Guarantees: each published slug has a page, made from the table in ``jobs.api.problems``.
Leaves to others: the prose overview (docs/api.md).
"""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from jobs.api.problems import PROBLEMS


def problem_index(request: HttpRequest) -> HttpResponse:
    """List all kinds of refusals."""
    return render(request, "jobs/problems.html", {"problems": PROBLEMS.values()})


def problem_page(request: HttpRequest, slug: str) -> HttpResponse:
    """Explain one kind of refusal. Raises: Http404 for a slug nobody published."""
    kind = PROBLEMS.get(slug)
    if kind is None:
        raise Http404
    return render(request, "jobs/problems.html", {"problems": [kind], "single": True})
