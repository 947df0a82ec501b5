"""The app: a page for people, a service for programs, a record for auditors.

``create_app(Settings(...))`` makes the ASGI application. Statistics live in the core; what is
here parses requests, calls one use case of ``workflows`` each, and keeps the record.
"""

from surelist.service.settings import Settings

__all__ = ["Settings"]
