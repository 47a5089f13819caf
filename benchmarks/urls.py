"""The product's addresses and the floor's."""

from django.db import connection
from django.urls import include, path
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from config.urls import handler400, handler404, handler500

__all__ = ["handler400", "handler404", "handler500", "urlpatterns"]


class Floor(APIView):
    """What any answer over HTTP costs that leaves a trace: the same server and middleware, one committed INSERT."""

    authentication_classes = []
    permission_classes = []

    def post(self, request: Request) -> Response:
        with connection.cursor() as cursor:
            cursor.execute("INSERT INTO benchmark.written (said) VALUES ('something')")
        return Response({"written": True})


urlpatterns = [path("benchmark/floor", Floor.as_view()), path("", include("config.urls"))]
