"""The door: a link or a token is exchanged for a cookie."""

from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response

from retold.web.entrance import LoginTokens
from retold.web.guard import Refusal, refused
from retold.web.looks import rendered
from retold.web.peers import is_of_others
from retold.web.request import form_of

_WAIT = Refusal(429, "Too many tokens were tried: wait a minute")


async def entered(request: Request, entrance: LoginTokens) -> Response:
    """Let somebody in, or tell them how to come in."""
    if is_of_others(request.client, request.scope["server"]):
        return refused(Refusal(403, "Another user of this machine asked for this"))
    if request.method == "POST":
        try:
            typed = (await form_of(request)).get("token", "")
        except (ValueError, ClientDisconnect):
            return refused(Refusal(400, "This form cannot be understood"))
        if not entrance.may_try():
            return refused(_WAIT)
        visitor = entrance.by_token(typed)
        told = "" if visitor else "That is not the token."
    else:
        key = request.query_params.get("key")
        visitor = entrance.by_link(key) if key else None
        told = "This link has been used, or is older than a minute." if key and not visitor else ""
    values = {"has_token": entrance.has_token, "told": told, "is_in": visitor is not None}
    response = HTMLResponse(rendered("enter.html", values), 200 if visitor or not told else 403)
    if visitor is not None:
        # Strict: no other site can make a browser send it. The page that this is goes on by itself, as our own.
        response.set_cookie(entrance.cookie, visitor, httponly=True, samesite="strict", path="/")
    return response
