//! Every tool that is translated: the agent's call, and what Claude Code would have written.

use gembridge_unified::tool_names::{ToolFamily, ToolNames, translate};
use serde_json::{Value, json};

#[track_caller]
fn check(family: ToolFamily, table: &[(&str, Value, &str, Value)]) {
    for (name, input, expected_name, expected) in table {
        let (translated, arguments) = translate(family, ToolNames::Extended, name, input);
        assert_eq!((translated.as_str(), &arguments), (*expected_name, expected), "{name} {input}");
    }
}

#[test]
fn gemini_tools_for_files_have_the_names_and_inputs_of_claude_code() {
    check(
        ToolFamily::Gemini,
        &[
            ("read_file", json!({"file_path": "a"}), "Read", json!({"file_path": "a"})),
            (
                "read_file",
                json!({"absolute_path": "/a", "offset": 0, "limit": 5}),
                "Read",
                json!({"file_path": "/a", "offset": 1, "limit": 5}),
            ),
            (
                "read_file",
                json!({"file_path": "a", "start_line": 3, "end_line": 7}),
                "Read",
                json!({"file_path": "a", "offset": 3, "limit": 5}),
            ),
            ("read_file", json!({"file_path": "a", "end_line": 7}), "Read", json!({"file_path": "a", "limit": 7})),
            ("read_many_files", json!({"include": ["a.txt"]}), "Read", json!({"file_path": "a.txt"})),
            ("read_many_files", json!({"paths": ["a", "b"]}), "read_many_files", json!({"paths": ["a", "b"]})),
            ("read_many_files", json!({"include": ["*.rs"]}), "read_many_files", json!({"include": ["*.rs"]})),
            (
                "write_file",
                json!({"file_path": "a", "content": "x"}),
                "Write",
                json!({"file_path": "a", "content": "x"}),
            ),
            (
                "replace",
                json!({"file_path": "a", "instruction": "why", "old_string": "o", "new_string": "n"}),
                "Edit",
                json!({"file_path": "a", "old_string": "o", "new_string": "n"}),
            ),
            (
                "replace",
                json!({"file_path": "a", "old_string": "o", "new_string": "n", "allow_multiple": true}),
                "Edit",
                json!({"file_path": "a", "old_string": "o", "new_string": "n", "replace_all": true}),
            ),
            (
                "replace",
                json!({"file_path": "a", "old_string": "o", "new_string": "n", "expected_replacements": 2}),
                "Edit",
                json!({"file_path": "a", "old_string": "o", "new_string": "n", "replace_all": true}),
            ),
            ("list_directory", json!({"dir_path": "d"}), "Glob", json!({"pattern": "*", "path": "d"})),
            ("list_directory", json!({"path": "d"}), "Glob", json!({"pattern": "*", "path": "d"})),
            ("glob", json!({"pattern": "*.rs", "dir_path": "d"}), "Glob", json!({"pattern": "*.rs", "path": "d"})),
            (
                "grep_search",
                json!({"pattern": "p", "dir_path": "d", "include_pattern": "*.rs", "names_only": true}),
                "Grep",
                json!({"pattern": "p", "path": "d", "glob": "*.rs", "output_mode": "files_with_matches"}),
            ),
            (
                "search_file_content",
                json!({"pattern": "p", "path": "d", "include": "*", "before": 1, "after": 2, "context": 3,
                    "total_max_matches": 4}),
                "Grep",
                json!({"pattern": "p", "path": "d", "glob": "*", "output_mode": "content", "-A": 2, "-B": 1, "-C": 3,
                    "head_limit": 4}),
            ),
        ],
    );
}

#[test]
fn gemini_tools_for_commands_the_web_plans_and_agents_are_translated_too() {
    check(
        ToolFamily::Gemini,
        &[
            (
                "run_shell_command",
                json!({"command": "ls", "description": "lists", "dir_path": "d", "is_background": true}),
                "Bash",
                json!({"command": "ls", "description": "lists", "run_in_background": true}),
            ),
            ("google_web_search", json!({"query": "q"}), "WebSearch", json!({"query": "q"})),
            (
                "web_fetch",
                json!({"prompt": "sum up https://a.example/x, please"}),
                "WebFetch",
                json!({"url": "https://a.example/x", "prompt": "sum up https://a.example/x, please"}),
            ),
            (
                "write_todos",
                json!({"todos": [{"description": "a", "status": "cancelled"}]}),
                "TodoWrite",
                json!({"todos": [{"content": "a", "status": "cancelled", "activeForm": "a"}]}),
            ),
            (
                "ask_user",
                json!({"questions": [{"question": "q", "type": "choice", "placeholder": "p", "header": "h"}]}),
                "AskUserQuestion",
                json!({"questions": [{"question": "q", "header": "h"}]}),
            ),
            ("enter_plan_mode", json!({"reason": "r"}), "EnterPlanMode", json!({"reason": "r"})),
            ("exit_plan_mode", json!({"plan_filename": "p"}), "ExitPlanMode", json!({"plan_filename": "p"})),
            ("activate_skill", json!({"name": "s"}), "Skill", json!({"skill": "s"})),
            (
                "invoke_agent",
                json!({"agent_name": "generalist", "prompt": "p"}),
                "Task",
                json!({"subagent_type": "generalist", "description": "generalist", "prompt": "p"}),
            ),
            (
                "codebase_investigator",
                json!({"objective": "o"}),
                "Task",
                json!({"subagent_type": "codebase_investigator", "description": "codebase_investigator",
                    "prompt": "o"}),
            ),
            ("mcp_github_list_issues", json!({"a": 1}), "mcp__github__list_issues", json!({"a": 1})),
            ("save_memory", json!({"fact": "f"}), "save_memory", json!({"fact": "f"})),
            ("complete_task", json!({"result": "r"}), "complete_task", json!({"result": "r"})),
        ],
    );
}

#[test]
fn the_basic_names_are_six_and_all_others_stay() {
    let basic = |name: &str| translate(ToolFamily::Gemini, ToolNames::Basic, name, &json!({})).0;
    for (name, expected) in [
        ("read_file", "Read"),
        ("write_file", "Write"),
        ("replace", "Edit"),
        ("list_directory", "Glob"),
        ("run_shell_command", "Bash"),
        ("google_web_search", "WebSearch"),
        ("glob", "glob"),
        ("search_file_content", "search_file_content"),
        ("write_todos", "write_todos"),
        ("mcp_a_b", "mcp_a_b"),
    ] {
        assert_eq!(basic(name), expected);
    }
    assert_eq!(translate(ToolFamily::OpenCode, ToolNames::Basic, "read", &json!({})).0, "read");
}

#[test]
fn qwen_tools_are_geminis_and_a_few_of_its_own() {
    check(
        ToolFamily::Qwen,
        &[
            ("read_file", json!({"absolute_path": "/a"}), "Read", json!({"file_path": "/a"})),
            (
                "edit",
                json!({"file_path": "a", "old_string": "o", "new_string": "n"}),
                "Edit",
                json!({"file_path": "a", "old_string": "o", "new_string": "n"}),
            ),
            (
                "todo_write",
                json!({"todos": [{"content": "c", "status": "pending", "id": "1"}]}),
                "TodoWrite",
                json!({"todos": [{"content": "c", "status": "pending", "activeForm": "c"}]}),
            ),
            (
                "agent",
                json!({"subagent_type": "t", "description": "d", "prompt": "p"}),
                "Task",
                json!({"subagent_type": "t", "description": "d", "prompt": "p"}),
            ),
            ("skill", json!({"skill": "s"}), "Skill", json!({"skill": "s"})),
            ("web_fetch", json!({"url": "u", "prompt": "p"}), "WebFetch", json!({"url": "u", "prompt": "p"})),
            ("mcp__a__b", json!({}), "mcp__a__b", json!({})),
        ],
    );
}

#[test]
fn opencode_tools_are_claude_codes_in_other_letters() {
    check(
        ToolFamily::OpenCode,
        &[
            ("read", json!({"filePath": "a", "offset": 1}), "Read", json!({"file_path": "a", "offset": 1})),
            ("write", json!({"filePath": "a", "content": "c"}), "Write", json!({"file_path": "a", "content": "c"})),
            (
                "edit",
                json!({"filePath": "a", "oldString": "o", "newString": "n", "replaceAll": true}),
                "Edit",
                json!({"file_path": "a", "old_string": "o", "new_string": "n", "replace_all": true}),
            ),
            ("bash", json!({"command": "c", "description": "d"}), "Bash", json!({"command": "c", "description": "d"})),
            ("glob", json!({"pattern": "*"}), "Glob", json!({"pattern": "*"})),
            (
                "grep",
                json!({"pattern": "p", "include": "*.rs"}),
                "Grep",
                json!({"pattern": "p", "glob": "*.rs", "output_mode": "content"}),
            ),
            ("webfetch", json!({"url": "u", "format": "text"}), "WebFetch", json!({"url": "u"})),
            (
                "todowrite",
                json!({"todos": [{"content": "c", "status": "completed", "priority": "low"}]}),
                "TodoWrite",
                json!({"todos": [{"content": "c", "status": "completed", "activeForm": "c"}]}),
            ),
            (
                "task",
                json!({"prompt": "p", "subagent_type": "t"}),
                "Task",
                json!({"subagent_type": "t", "prompt": "p"}),
            ),
            ("skill", json!({"name": "s"}), "Skill", json!({"skill": "s"})),
            ("patch", json!({"x": 1}), "patch", json!({"x": 1})),
        ],
    );
}

#[test]
fn codex_tools_are_translated_where_there_is_a_counterpart() {
    check(
        ToolFamily::Codex,
        &[
            ("exec_command", json!({"cmd": "ls -l"}), "Bash", json!({"command": "ls -l"})),
            ("shell", json!({"command": ["bash", "-lc", "ls | wc"]}), "Bash", json!({"command": "ls | wc"})),
            (
                "shell",
                json!({"command": ["echo", "it's", ""], "timeout_ms": 5}),
                "Bash",
                json!({"command": r"echo 'it'\''s' ''", "timeout": 5}),
            ),
            (
                "update_plan",
                json!({"plan": [{"step": "s", "status": "pending"}]}),
                "TodoWrite",
                json!({"todos": [{"content": "s", "status": "pending", "activeForm": "s"}]}),
            ),
            ("apply_patch", json!("*** Begin Patch"), "apply_patch", json!("*** Begin Patch")),
        ],
    );
}

#[test]
fn claude_tools_stay_as_they_are() {
    let input = json!({"file_path": "a"});
    assert_eq!(translate(ToolFamily::Claude, ToolNames::Extended, "Read", &input), ("Read".to_owned(), input));
}
