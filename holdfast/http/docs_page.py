"""`/docs`: the OpenAPI document as a page, drawn by the browser without anything from elsewhere."""

from __future__ import annotations

from importlib.resources import files

PAGE = files("holdfast.http").joinpath("docs.html").read_text("utf-8")
