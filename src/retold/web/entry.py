"""The door: a link or a token is exchanged for a cookie."""

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from retold.web.entrance import Entrance
from retold.web.looks import rendered
from retold.web.request import form_of


async def entered(request: Request, entrance: Entrance) -> Response:
    """Let somebody in, or tell them how to come in."""
    if request.method == "POST":
        visitor = entrance.by_token((await form_of(request)).get("token", ""))
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
