"""Addresses of memory."""

from django.urls import path

from memory.api import knowledge, memories, profile, projects

_PERSON = "subjects/<str:external_id>"

app_name = "memory"
urlpatterns = [
    path(f"{_PERSON}/memories", memories.Memories.as_view(), name="memory-list"),
    path(f"{_PERSON}/memories/<uuid:memory_id>", memories.OneMemory.as_view(), name="memory-one"),
    path(f"{_PERSON}/recall", memories.Recall.as_view(), name="recall"),
    path(f"{_PERSON}/profile", profile.Profile.as_view(), name="profile-list"),
    path(f"{_PERSON}/profile/<str:key>", profile.OneProfileValue.as_view(), name="profile-one"),
    path("projects", projects.Projects.as_view(), name="project-list"),
    path("projects/<uuid:project_id>", projects.OneProject.as_view(), name="project-one"),
    path("profile-keys", profile.ProfileKeys.as_view(), name="profile-key-list"),
    path("profile-keys/<str:key>", profile.OneProfileKey.as_view(), name="profile-key-one"),
    path("knowledge/documents", knowledge.Documents.as_view(), name="document-list"),
    path("knowledge/documents/<uuid:document_id>", knowledge.OneDocument.as_view(), name="document-one"),
    path("knowledge/search", knowledge.SearchKnowledge.as_view(), name="knowledge-search"),
]
