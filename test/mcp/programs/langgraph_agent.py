"""An agent of LangGraph with the tools of the server, over MCP. Prints what its scripted model has seen."""

import asyncio
import os
from typing import Any

from agent_steps import conclusion, next_calls, report
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_mcp_adapters.client import MultiServerMCPClient


def text_of(message: ToolMessage) -> str:
    """Returns the texts in the result of a tool."""
    blocks = [message.content] if isinstance(message.content, str) else message.content
    return "\n".join(block if isinstance(block, str) else block.get("text", "") for block in blocks)


def seen(messages: list[BaseMessage]) -> list[str]:
    """Returns the text of the results of each step."""
    steps: list[str] = []
    for before, message in zip([None, *messages], messages):
        if not isinstance(message, ToolMessage):
            continue
        if isinstance(before, ToolMessage):
            steps[-1] += text_of(message)
        else:
            steps.append(text_of(message))
    return steps


class ScriptedModel(BaseChatModel):
    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        results = seen(messages)
        calls = next_calls(results)
        message = AIMessage(
            content=conclusion(results) if calls is None else "",
            tool_calls=[
                {"name": name, "args": args, "id": f"call-{len(results)}-{i}"} for i, (name, args) in enumerate(calls or [])
            ],
        )
        return ChatResult(generations=[ChatGeneration(message=message)])


async def main() -> None:
    headers = {"Authorization": f"Bearer {os.environ['TOKEN']}", "Service-Workspace-Id": os.environ["WORKSPACE"]}
    url = f"{os.environ['BASE_URL']}/mcp"
    client = MultiServerMCPClient({"troupe": {"transport": "streamable_http", "url": url, "headers": headers}})
    agent = create_agent(ScriptedModel(), await client.get_tools())
    state = await agent.ainvoke({"messages": [("user", "Work.")]}, {"recursion_limit": 50})
    messages = state["messages"]
    blocks = [block for message in messages if isinstance(message, ToolMessage) for block in message.content]
    pictures = sum(isinstance(block, dict) and block.get("type") == "image" for block in blocks)
    report(messages[-1].content, seen(messages), pictures)


asyncio.run(main())
