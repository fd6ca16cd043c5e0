//! The examples at the end of each command's long help.

pub const TOP: &str = "\
Examples:
  gembridge chat                       talk to the agent that is there
  gembridge run 'what is a monad?'     one question, one answer
  gembridge serve                      OpenAI API, chat page and ACP on http://127.0.0.1:11434
  gembridge doctor                     what is missing, and how to fix it

With no agent installed, the built-in `demo` agent answers.
";

pub const BY_COMMAND: &[(&str, &str)] = &[
    (
        "serve",
        "\
Examples:
  gembridge serve                                        on http://127.0.0.1:11434; the first run prints a key
  gembridge serve --agent demo --port 8080
  gembridge serve --host 0.0.0.0 --behind-proxy --allow-host bridge.example.org

SIGTERM lets running turns finish and ends; a second one ends at once. SIGHUP reads the settings again.
",
    ),
    (
        "keys",
        "\
Examples:
  gembridge keys create laptop
  gembridge keys create ci --turns 2 --queue 10 --priority -1
  gembridge keys list
  gembridge keys rotate laptop
  gembridge keys revoke laptop
",
    ),
    (
        "origins",
        "\
Examples:
  gembridge origins allow https://app.example.org
  gembridge origins allow chrome-extension://abcdefghijklmnopabcdefghijklmnop
  gembridge origins list
",
    ),
    (
        "run",
        "\
Examples:
  gembridge run 'what is a monad?'
  git diff | gembridge run - --model gemini-2.5-flash
  gembridge run --cwd ~/project 'why does the build fail?'     after `gembridge trust add ~/project`
  gembridge run --output-format json 'hello' | jq -r .result
  gembridge run --timeout 30 --permissions deny 'summarise README.md'
  gembridge run --driver headless --mode plan --cwd ~/project 'what would you change?'
",
    ),
    (
        "connect",
        "\
Examples:
  gembridge connect                                   relays to the gateway on this machine, with your own key
  gembridge connect ws://127.0.0.1:11434/acp          relays to this one
  gembridge connect 'ws://127.0.0.1:11434/acp?session=ID&limit=1'
                                                      goes on with a session, from its last turn
  GEMBRIDGE_KEY=… gembridge connect wss://bridge.example.org

In an editor that starts ACP agents, name `gembridge` as the command and `connect` as its argument.
When the gateway is restarted, the relay comes back and goes on where it was.
",
    ),
    (
        "launch",
        "\
Examples:
  gembridge launch codex                              Codex CLI, with your default agent in the place of its model
  gembridge launch claude --model gemini -- -p 'hello'
  gembridge launch opencode --print                   shows what would be set

A gateway is started if none runs, and ends with the program.
",
    ),
    (
        "chat",
        "\
Examples:
  gembridge chat
  gembridge chat --agent demo
  gembridge chat --cwd ~/project --permissions ask

Ctrl-C cancels the turn; a second one, or Ctrl-D, leaves.
",
    ),
    (
        "sessions",
        "\
Examples:
  gembridge sessions list                              what agents did in this folder
  gembridge sessions list --all --json | jq -r '.[] | [.agent, .id, .title] | @tsv'
  gembridge sessions show                              the latest of this folder
  gembridge sessions show 41f6ab9a --full
  gembridge sessions export 41f6ab9a --format html > session.html
  gembridge sessions export 41f6ab9a --format jsonl | jq -r 'select(.role == \"user\")'
  gembridge sessions search flaky test                 who said that, and how to go on with it
  gembridge sessions search '\"connection refused\" inde*' --agent codex
  gembridge sessions stats                             tokens by day, agent, model and project
  gembridge sessions stats --by model --since 2026-11-01 --json
  gembridge sessions watch                             what an agent in this folder is doing right now
  gembridge sessions resume 41f6ab9a                   a chat with the agent that wrote it
  gembridge sessions resume 41f6ab9a --agent codex 'go on'

The files of Claude Code, Codex, Gemini CLI, OpenCode and Qwen Code are read where the agents keep them, and never written;
the gateway's own sessions are read from its store. Costs come from `[prices.MODEL]` in the settings.
",
    ),
    (
        "agents",
        "\
Examples:
  gembridge agents
  gembridge agents --json | jq -r '.[] | select(.installed) | .name'
",
    ),
    (
        "doctor",
        "\
Examples:
  gembridge doctor
  gembridge doctor --agent gemini
  gembridge doctor --json | jq '.checks[] | select(.status != \"ok\")'
",
    ),
    (
        "config",
        "\
Examples:
  gembridge config show
  gembridge config show --json | jq '.values[] | select(.origin.kind != \"default\")'
  gembridge config schema > gembridge.schema.json
",
    ),
    (
        "trust",
        "\
Examples:
  gembridge trust add ~/project
  gembridge trust list
  gembridge trust remove ~/project
",
    ),
    (
        "cluster",
        "\
Examples:
  gembridge cluster                    the gateways that share one Redis or Valkey, and what each does
  gembridge cluster --json | jq '.nodes[].address'
",
    ),
    (
        "completions",
        "\
Examples:
  gembridge completions bash > ~/.local/share/bash-completion/completions/gembridge
  gembridge completions zsh > ~/.zfunc/_gembridge
  gembridge completions fish > ~/.config/fish/completions/gembridge.fish
",
    ),
    (
        "demo-agent",
        "\
Examples:
  gembridge run --agent demo 'hello'
  gembridge demo-agent --help          what its words do
",
    ),
];
