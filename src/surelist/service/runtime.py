"""What the handlers share: settings, record, spool, and who is asking."""

from __future__ import annotations

import asyncio
import hmac
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial, wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

import anyio
from msgspec import Struct, field
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from surelist.promises.policy import Policy
from surelist.service.errors import Busy, NotAuthenticated, without_places
from surelist.service.middleware import Body, Metrics, client
from surelist.service.record import access, live_settings
from surelist.service.record.access import Brake, Token
from surelist.service.record.connections import is_postgres
from surelist.service.record.event import E
from surelist.service.record.log import Key, Written
from surelist.service.record.record import LOCAL_ACTOR, Registry
from surelist.service.record.view import View
from surelist.service.settings import Settings
from surelist.service.uploads import Spool
from surelist.service.workers import Limits, Workers, serving

HEAVY_JOBS = 2  # files worked on at the same time; others wait their turn
PRINTS = 1  # reports made into PDF at the same time: they take no slot from calibrations
PRINTS_WAITING = 4
PRINT_SECONDS = 60
LARGE_BODIES = 4  # held in memory at the same time
REMEMBERED = 1000
P = ParamSpec("P")
T = TypeVar("T")
Waiting = Callable[P, Awaitable[T]]  # a handler that runs when it is its turn


class Mailbox:
    """Results from the writer's thread, handed over together.

    ``asyncio.wrap_future`` wakes the loop once per result, and each time the two threads fight
    for the interpreter; here a batch costs one or two wake-ups.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._waiting: deque[tuple[asyncio.Future[Any], Future[Any]]] = deque()
        self._awake = False

    async def wait(self, future: Future[T]) -> T:
        waiter: asyncio.Future[T] = self.loop.create_future()
        future.add_done_callback(lambda done: self._put(waiter, done))
        return await waiter

    def _put(self, waiter: asyncio.Future[Any], done: Future[Any]) -> None:
        self._waiting.append((waiter, done))
        if not self._awake:
            self._awake = True
            self.loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        self._awake = False
        while self._waiting:
            waiter, done = self._waiting.popleft()
            if waiter.cancelled():
                continue
            if (error := done.exception()) is not None:
                waiter.set_exception(error)
            else:
                waiter.set_result(done.result())


class Slots:
    """Heavy work, a few pieces at the same time; who comes when ``waiting`` others wait is sent away."""

    def __init__(
        self, workers: Workers, at_once: int, waiting: int | None = None, places: tuple[Path, ...] = ()
    ) -> None:
        self.workers, self._at_once, self._places = workers, at_once, places
        self._most = None if waiting is None else at_once + waiting
        self._inside = 0
        self._limiter: anyio.CapacityLimiter | None = None

    async def run(self, job: Callable[[], T]) -> T:
        """``job`` on a thread, when it is its turn; its heavy parts end when the client leaves."""
        if self._most is not None and self._inside >= self._most:
            raise Busy("Others wait for this already. Try again shortly; nothing was recorded.")
        if self._limiter is None:  # belongs to the loop that runs
            self._limiter = anyio.CapacityLimiter(self._at_once)
        gone, asking = threading.Event(), client.get()
        watch = asyncio.create_task(_watch(asking, gone)) if asking is not None else None

        def served() -> T:
            with serving(self.workers, gone), without_places(self._places):
                return job()

        self._inside += 1
        try:
            return await anyio.to_thread.run_sync(served, limiter=self._limiter)
        finally:
            self._inside -= 1
            if watch is not None:
                watch.cancel()


def slots_of(settings: Settings) -> tuple[Slots, Slots]:
    """For work on files, and for printing: each with processes of its own."""

    def workers(seconds: float) -> Workers:
        return Workers(Limits(seconds, 2 * settings.max_upload, settings.work_memory, settings.spool))

    prints = workers(min(PRINT_SECONDS, settings.work_seconds))
    places = [settings.spool, settings.folder]
    places += [] if is_postgres(settings.database) else [Path(settings.database)]
    return (
        Slots(workers(settings.work_seconds), HEAVY_JOBS, places=tuple(places)),
        Slots(prints, PRINTS, PRINTS_WAITING, tuple(places)),
    )


class Runtime(Struct):
    """One service at work."""

    settings: Settings
    registry: Registry
    spool: Spool
    metrics: Metrics
    brake: Brake
    heavy: Slots
    printing: Slots
    mailbox: Mailbox | None = None
    large_bodies: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(LARGE_BODIES))
    local_sessions: set[str] = field(default_factory=set)
    # used before: they never change, and the writer checks that they are not retired
    policies: dict[str, Policy] = field(default_factory=dict)

    def take_chosen(self) -> None:
        """Settings as an admin chose them last, perhaps by another service on the same record."""
        self.settings = self.settings.with_chosen(live_settings.latest(self.registry).chosen)

    async def work(self, job: Callable[..., T], *args: object, **named: object) -> T:
        """Run something slow on a thread, a few at a time; its heavy parts end when the client leaves."""
        return await self.heavy.run(partial(job, *args, **named))

    async def read(self, job: Callable[..., T], *args: object, **named: object) -> T:
        """Run a quick look at the record on a thread."""
        return await run_in_threadpool(job, *args, **named)

    def load_policy(self, digest: str) -> Policy:
        """A policy from the record, remembered for the next time."""
        policy = self.registry.policy(digest).policy
        if len(self.policies) >= REMEMBERED:
            self.policies.clear()
        self.policies[digest] = policy
        return policy

    async def written(self, future: Future[T]) -> T:
        """Wait until something is on record."""
        loop = asyncio.get_running_loop()
        if self.mailbox is None or self.mailbox.loop is not loop:
            self.mailbox = Mailbox(loop)
        return await self.mailbox.wait(future)

    def view(self, request: Request, role: str) -> View:
        """The record as whoever calls the API may use it, with at least this role."""
        if self.settings.open_to_all:
            return View(self.registry, LOCAL_ACTOR)
        scheme, _, text = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not text:
            raise NotAuthenticated("Send a token: Authorization: Bearer surelist_...")
        token = self.token(request, text)
        actor = LOCAL_ACTOR if token is None else access.as_actor(token)
        actor.require(role)
        return View(self.registry, actor)

    def token(self, request: Request, text: str) -> Token | None:
        """The token behind a text; None for the one of this machine. Guessing is slowed down.

        A valid token is never slowed down, whatever others have tried from the same address.
        """
        text = text.strip()
        local = self.settings.local_token
        if not self.settings.login and local and hmac.compare_digest(text.encode(), local.encode()):
            return None
        with suppress(NotAuthenticated):
            return access.find_token(self.registry, text)
        peer = request.client.host if request.client else "?"
        self.brake.failed(self.settings.client_of(peer, request.headers.get("x-forwarded-for", "")))
        raise NotAuthenticated(
            "The token is not valid, was revoked, or has expired. It has to be made on the record of this "
            "service: surelist token create with the same --database."
        )


async def _watch(waiting: Body, gone: threading.Event) -> None:
    await waiting.gone()
    gone.set()


def runtime_of(request: Request) -> Runtime:
    runtime: Runtime = request.app.state.runtime
    return runtime


def key_of(request: Request) -> Key | None:
    """The idempotency key of a request, bound to its address; whoever reads its body binds it to that."""
    if (name := request.headers.get("idempotency-key")) is None:
        return None
    request.state.key = key = Key(name)
    key.bind(request.method, request.url.path, request.url.query)
    return key


def bind(request: Request, *parts: str | bytes) -> None:
    """Bind the idempotency key of a request, if it has one, to what its body says."""
    if (key := getattr(request.state, "key", None)) is not None:
        key.bind(*parts)


class Session:
    """Somebody's request: the service at work for it, and the record as they may use it."""

    def __init__(self, runtime: Runtime, view: View) -> None:
        self.runtime, self.view = runtime, view

    @property
    def spool(self) -> Spool:
        return self.runtime.spool

    @property
    def settings(self) -> Settings:
        return self.runtime.settings


Job = Callable[Concatenate[Session, P], Written[E]]


def once(work: Job[P, E]) -> Job[P, E]:
    """Work for a session that is done once, however often it is asked for under one idempotency key."""

    @wraps(work)
    def done(me: Session, /, *args: P.args, **named: P.kwargs) -> Written[E]:
        return me.view.once(lambda: work(me, *args, **named))

    return done


def heavy(add: Callable[..., Any], slots: str = "heavy") -> Callable[[Callable[P, T]], Waiting[P, T]]:
    """A route whose handler has heavy parts: it runs when it is its turn, in ``slots``, and those parts end
    when the client leaves."""

    def added(handler: Callable[P, T]) -> Waiting[P, T]:
        @wraps(handler)
        async def waiting(*args: P.args, **named: P.kwargs) -> T:
            asking: Any = named.get("me") or named["call"]
            done: T = await getattr(asking.runtime, slots).run(partial(handler, *args, **named))
            return done

        return cast(Waiting[P, T], add(waiting))

    return added
