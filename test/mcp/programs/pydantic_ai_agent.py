"""An agent of pydantic-ai with the tools of the server, over MCP. Prints what its scripted model has seen."""

import asyncio
import os

from agent_steps import conclusion, next_calls, report
from pydantic_ai import Agent, BinaryContent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel


def seen(messages: list[ModelMessage]) -> list[str]:
    """Returns the text of the results of each step."""
    steps = []
    for message in messages:
        returned = [part for part in message.parts if isinstance(part, ToolReturnPart)]
        if returned:
            steps.append("\n".join(part.model_response_str() for part in returned))
    return steps


def scripted(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
    results = seen(messages)
    calls = next_calls(results)
    if calls is None:
        return ModelResponse(parts=[TextPart(conclusion(results))])
    return ModelResponse(parts=[ToolCallPart(name, args) for name, args in calls])


async def main() -> None:
    headers = {"Authorization": f"Bearer {os.environ['TOKEN']}", "Service-Workspace-Id": os.environ["WORKSPACE"]}
    tools = MCPToolset(f"{os.environ['BASE_URL']}/mcp", headers=headers)
    agent = Agent(FunctionModel(scripted), toolsets=[tools])
    async with agent:
        result = await agent.run("Work.")
    messages = result.all_messages()
    contents = [
        content
        for message in messages
        for part in message.parts
        if isinstance(part, (UserPromptPart, ToolReturnPart))
        for content in (part.content if isinstance(part.content, list) else [part.content])
    ]
    report(result.output, seen(messages), sum(isinstance(content, BinaryContent) for content in contents))


asyncio.run(main())
