"""Two carts and one narrow door: each asks for it, waits for a yes, drives through, and gives it back."""

from __future__ import annotations

from runtime import Message, Node, Publisher, QoS, Subscription, every, on

DOOR_M, HALF_WIDTH_M = 5.0, 1.0
"""Where the door is, and how far before and behind it a cart is in the way of another."""


class Claim(Message):
    """A cart asks for the door, or gives it back."""

    cart: str
    is_wanted: bool


class Grant(Message, kind="state"):
    """Who may be in the door; "" while it is free."""

    cart: str


class Position(Message, kind="state"):
    cart: str
    x_m: float


class Doorkeeper(Node):
    """First come, first served; says again and again who may pass, so that a lost word changes nothing."""

    claim = Subscription(Claim, "door/claim")
    grant = Publisher(Grant, "door/grant")

    def __init__(self) -> None:
        self.queue: list[str] = []

    @on(claim)
    def take(self, claim: Claim) -> None:
        if claim.is_wanted and claim.cart not in self.queue:
            self.queue.append(claim.cart)
        elif not claim.is_wanted and claim.cart in self.queue:
            self.queue.remove(claim.cart)

    @every(hz=10)
    def tell(self) -> None:
        self.grant.publish(Grant(cart=self.queue[0] if self.queue else ""))


class Cart(Node):
    """Drives to the other end of the corridor. `name` in the launch file is whom the doorkeeper knows."""

    grant = Subscription(Grant, "door/grant", qos=QoS(lifespan_s=0.5))  # a doorkeeper that is gone lets nobody in
    claim = Publisher(Claim, "door/claim")
    position = Publisher(Position, "position")

    def __init__(self, start_m: float = 0.0, speed_mps: float = 1.0) -> None:
        self.x_m = start_m
        self.speed_mps = speed_mps
        self.is_asking = False

    @every(hz=20)
    def drive(self) -> None:
        is_near = abs(self.x_m + self.speed_mps * 0.05 - DOOR_M) < HALF_WIDTH_M
        grant = self.grant.latest()
        if is_near != self.is_asking:
            self.is_asking = is_near
            self.claim.publish(Claim(cart=self.name, is_wanted=is_near))
        if not is_near or (grant is not None and grant.cart == self.name):
            self.x_m += self.speed_mps * 0.05
        self.position.publish(Position(cart=self.name, x_m=self.x_m))
