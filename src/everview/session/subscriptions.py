"""Who wants to hear of a view's changes, and telling them: in order, once each, after the commit."""

from __future__ import annotations

import datetime
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock

import pyarrow as pa

from everview.backends.base import VersionedDelta

Callback = Callable[[VersionedDelta], object]


class Subscription:
    """One callback on one view, until ``cancel``."""

    def __init__(self, subscriptions: Subscriptions, view: str, callback: Callback) -> None:
        self.subscriptions = subscriptions
        self.view = view
        self.callback = callback

    @property
    def is_active(self) -> bool:
        """Whether the callback will still be called."""
        return self in self.subscriptions

    def cancel(self) -> None:
        """Ends the subscription, at once and for good; cancelling again does nothing."""
        self.subscriptions.remove(self)

    def __repr__(self) -> str:
        return f"<Subscription to {self.view}, {'active' if self.is_active else 'cancelled'}>"


class JointSubscription(Subscription):
    """One callback on several views; cancelling it ends all."""

    def __init__(self, first: Subscription, others: Sequence[Subscription]) -> None:
        super().__init__(first.subscriptions, first.view, first.callback)
        self._all = (first, *others)

    @property
    def is_active(self) -> bool:
        """Whether the callback will still be called."""
        return any(s.is_active for s in self._all)

    def cancel(self) -> None:
        """Ends the subscription, at once and for good."""
        for subscription in self._all:
            subscription.cancel()


@dataclass(frozen=True, slots=True)
class _Announcement:
    subscription: Subscription
    change: VersionedDelta


class Subscriptions:
    """All subscriptions of a database, and the announcements that wait to be made.

    Commits enter announcements in order; ``deliver`` makes them in that order. A commit inside a callback only enters
    its own, and so does a commit of another thread: the delivery that is running makes them later, so that nobody hears of
    version 8 before version 7.
    """

    def __init__(self) -> None:
        self._active: list[Subscription] = []
        self._waiting: deque[_Announcement] = deque()
        self._is_delivering = False
        self._guard = Lock()

    def __contains__(self, subscription: object) -> bool:
        return any(s is subscription for s in self._active)

    def add(self, view: str, callback: Callback) -> Subscription:
        """Subscribes to a view's changes from now on."""
        subscription = Subscription(self, view, callback)
        self._active.append(subscription)
        return subscription

    def remove(self, subscription: Subscription) -> None:
        """Ends a subscription; what waits for it is not delivered."""
        self._active = [s for s in self._active if s is not subscription]

    def remove_view(self, view: str) -> None:
        """Ends all subscriptions to a view."""
        self._active = [s for s in self._active if s.view.lower() != view.lower()]

    def rename_view(self, before: str, after: str) -> None:
        """Lets the subscriptions to a view go on under its new name."""
        for subscription in self._active:
            if subscription.view.lower() == before.lower():
                subscription.view = after

    def announce(self, version: int, deltas: Mapping[str, pa.Table]) -> None:
        """Enters the deltas of a commit that has just been made, for those who listen."""
        if not self._active:
            return
        now = datetime.datetime.now(datetime.UTC)
        for subscription in self._active:
            if subscription.view in deltas:
                change = VersionedDelta(version, deltas[subscription.view], now)
                self._waiting.append(_Announcement(subscription, change))

    def deliver(self) -> None:
        """Calls the callbacks.

        Raises:
            ExceptionGroup: what the callbacks raised, after all have been called.
        """
        if not self._waiting:
            return  # whoever announces delivers afterwards
        with self._guard:
            if self._is_delivering:
                return
            self._is_delivering = True
        errors: list[Exception] = []
        while (announcement := self._next()) is not None:
            if announcement.subscription not in self:
                continue
            try:
                announcement.subscription.callback(announcement.change)
            except Exception as error:  # a stranger's code: whatever it raises must not stop the others
                error.add_note(
                    f"raised by a subscriber of view '{announcement.subscription.view}' for version "
                    f"{announcement.change.version}, which is committed"
                )
                errors.append(error)
            except BaseException:
                self._is_delivering = False
                raise
        if errors:
            raise ExceptionGroup("subscribers failed; the transactions are committed", errors)

    def _next(self) -> _Announcement | None:
        """The next announcement; None ends the delivery, in one step, so that none made meanwhile is left behind."""
        with self._guard:
            if self._waiting:
                return self._waiting.popleft()
            self._is_delivering = False
            return None
