"""The routes below ``/api/v1/``."""

from django.urls import path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerView

from jobs.api import (
    callbacks,
    capacity,
    choices,
    commands,
    live,
    schema,  # noqa: F401 -- importing it registers the authentication schemes
    tokens,
    views,
)

#: The description is only read; its page has nothing to say about itself to OPTIONS.
READ = ["get", "head"]

urlpatterns = [
    path("jobs", views.JobsView.as_view(), name="jobs"),
    path("jobs/<str:job_id>", views.JobView.as_view(), name="job"),
    path("jobs/<str:job_id>/retry", commands.JobRetryView.as_view(), name="job-retry"),
    path(
        "jobs/<str:job_id>/regenerate", commands.JobRegenerateView.as_view(), name="job-regenerate"
    ),
    path("jobs/<str:job_id>/cancel", commands.JobCancelView.as_view(), name="job-cancel"),
    path("jobs/<str:job_id>/choice", choices.JobChoiceView.as_view(), name="job-choice"),
    path("jobs/<str:job_id>/choose", choices.JobChooseView.as_view(), name="job-choose"),
    path("live-events", live.LiveEventsView.as_view(), name="live-events"),
    path("live-events/<str:event_id>", live.LiveEventView.as_view(), name="live-event"),
    path("live-events/<str:event_id>/start", live.LiveStartView.as_view(), name="live-event-start"),
    path("live-events/<str:event_id>/end", live.LiveEndView.as_view(), name="live-event-end"),
    path(
        "live-events/<str:event_id>/cancel", live.LiveCancelView.as_view(), name="live-event-cancel"
    ),
    path("callbacks/<str:provider>/<str:token>", callbacks.CallbackView.as_view(), name="callback"),
    path("capacity", capacity.CapacityView.as_view(), name="capacity"),
    path("capacity/<str:resource>", capacity.ResourceView.as_view(), name="capacity-resource"),
    path("capacity/<str:resource>/pause", capacity.PauseView.as_view(), name="capacity-pause"),
    path("capacity/<str:resource>/resume", capacity.ResumeView.as_view(), name="capacity-resume"),
    path(
        "capacity/<str:resource>/cooldown",
        capacity.CooldownView.as_view(),
        name="capacity-cooldown",
    ),
    path("tokens/rotate", tokens.TokenRotateView.as_view(), name="token-rotate"),
    path("schema", SpectacularAPIView.as_view(http_method_names=READ), name="schema"),
    path(
        "docs",
        SpectacularSwaggerView.as_view(url_name="schema", http_method_names=READ),
        name="docs",
    ),
]
