"""Addresses of accounts."""

from django.urls import path

from accounts.api import views

app_name = "accounts"
urlpatterns = [
    path("jobs/<uuid:job_id>", views.ShowJob.as_view(), name="job-show"),
]
