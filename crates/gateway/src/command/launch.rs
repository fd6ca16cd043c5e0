//! `gembridge launch`: another program with the gateway in the place of its model. Nothing of that program's own settings is
//! changed: variables, arguments and a file that goes again lead it here.

mod programs;

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use gembridge_drivers::profile::Version;
use gembridge_process::foreground::{self, Service};

use self::programs::{Program, Settings, Target};
use super::Context;
use super::connect::{own_gateway, own_key};
use crate::cli::args::LaunchArgs;
use crate::config::folders::ensure_private;
use crate::connect::{self, Address};
use crate::exit::{CommandError, CommandResult, ExitCode};
use crate::{keys, local_secret, terminal};

/// How long a gateway has to come up, and to end.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(100);

pub fn run(args: &LaunchArgs, context: &Context) -> CommandResult {
    let program = Program::named(&args.program).ok_or_else(|| {
        let known = Program::ALL.map(|program| format!("`{}`", program.name())).join(", ");
        CommandError::usage(format!("`{}` is none of the programs that can be launched: {known}", args.program))
    })?;
    if args.print {
        let target = Target { address: own_gateway(context).authority().to_owned(), model: args.model.clone() };
        return terminal::print(&shown(program, &target, &args.arguments, context)).map(|()| ExitCode::Success);
    }
    let path = context.sources.environment.get("PATH").unwrap_or_default();
    let executable = find(program.name(), path).ok_or_else(|| {
        let message = format!("`{}` is not on PATH; install it with `{}`", program.name(), program.installed_by());
        CommandError::new(ExitCode::NoAgent, message)
    })?;
    let built = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let event_loop = built.context("no event loop; check the limit of open files (`ulimit -n`)")?;
    event_loop.block_on(async {
        let version = check_version(program, &executable).await?;
        let (address, gateway) = reachable(context).await?;
        let target = Target { address: address.authority().to_owned(), model: args.model.clone() };
        let ended = match check_model(&address, &args.model, context).await {
            Ok(()) => {
                let (name, model) = (program.name(), &args.model);
                terminal::write_stderr(&format!("gembridge: {name} {version} with `{model}` of {}\n", target.address));
                launch(program, &executable, &target, &args.arguments, context).await
            }
            Err(wrong) => Err(wrong),
        };
        if let Some(gateway) = gateway {
            gateway.stop(PATIENCE).await;
        }
        ended
    })
}

/// The program runs, and says which version it is. Another one than was tested is named.
async fn check_version(program: Program, executable: &Path) -> Result<Version, CommandError> {
    let name = program.name();
    let unusable = |why: String| {
        let message = format!("`{}` {why}; install it anew with `{}`", executable.display(), program.installed_by());
        CommandError::new(ExitCode::NoAgent, message)
    };
    let printed = foreground::printed(executable, &["--version"], PATIENCE).await;
    let printed = printed.map_err(|error| unusable(format!("cannot be started: {error}")))?;
    let version = printed.as_deref().and_then(Version::find_in);
    let version = version.ok_or_else(|| unusable("does not say which version it is".to_owned()))?;
    if version < program.tested() {
        let tested = program.tested();
        terminal::write_stderr(&format!("gembridge: {name} {version} is older than {tested}, which was tested\n"));
    }
    Ok(version)
}

/// The gateway takes the key, and has the model.
async fn check_model(address: &Address, model: &str, context: &Context) -> Result<(), CommandError> {
    let (key, secret) = (own_key(context)?, local_secret::path(&context.config.folders));
    let path = if model == DEFAULT { "/v1/models".to_owned() } else { format!("/v1/models/{}", encoded(model)) };
    match connect::status(address, &secret, &path, &key).await.as_deref() {
        Ok("200") => Ok(()),
        Ok("401") => {
            let message = "the gateway does not take the key of this user; `gembridge keys list` shows which it takes";
            Err(CommandError::new(ExitCode::Failed, message))
        }
        Ok("404") => {
            let message = format!(
                "the gateway has no model `{model}`; `gembridge agents` lists the agents, and `--model` takes one"
            );
            Err(CommandError::usage(message))
        }
        Ok(status) => Err(CommandError::new(
            ExitCode::Failed,
            format!("the gateway answered {status}; `gembridge doctor` may say why"),
        )),
        Err(why) => Err(CommandError::new(ExitCode::Failed, why.clone())),
    }
}

/// Stands for the default agent, whatever it is called.
const DEFAULT: &str = "default";

/// A name in a path.
fn encoded(name: &str) -> String {
    let byte = |byte: u8| match byte {
        b'-' | b'.' | b'_' | b'~' | b'/' => char::from(byte).to_string(),
        byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    name.bytes().map(byte).collect()
}

async fn launch(
    program: Program,
    executable: &Path,
    target: &Target,
    arguments: &[String],
    context: &Context,
) -> CommandResult {
    let key = own_key(context)?;
    let folder = context.config.folders.cache.join("launch");
    let settings = program.settings(target);
    let file = settings.file.as_ref().map(|_| folder.join(format!("{}-{}.json", program.name(), std::process::id())));
    if let (Some(file), Some(content)) = (&file, &settings.file) {
        ensure_private(&context.config.folders.cache)?;
        ensure_private(&folder)?;
        fs::write(file, content).with_context(|| format!("cannot write `{}`", file.display()))?;
    }
    let shown = file.as_ref().map(|file| file.display().to_string()).unwrap_or_default();
    let variables: Vec<(&str, String)> =
        settings.variables.iter().map(|(name, value)| (*name, value.filled(&key, &shown))).collect();
    let variables = variables.iter().map(|(name, value)| (*name, value.as_str()));
    let all = settings.arguments.iter().chain(arguments).map(String::as_str);
    let ended = foreground::run(executable, all, variables).await;
    if let Some(file) = file {
        // It holds no key; what is left of it is left in the cache.
        fs::remove_file(file).ok();
    }
    let ended = ended.with_context(|| format!("cannot start `{}`", executable.display()))?;
    match ended.code() {
        Some(code) => Ok(ExitCode::Program(u8::try_from(code).unwrap_or(1))),
        None => Ok(ExitCode::Cancelled),
    }
}

/// The gateway of this user, started if none runs: then it ends with the program.
async fn reachable(context: &Context) -> Result<(Address, Option<Service>), CommandError> {
    let folders = &context.config.folders;
    let secret = local_secret::path(folders);
    let address = own_gateway(context);
    if connect::is_own_gateway(&address, &secret).await {
        return Ok((address, None));
    }
    ensure_private(&folders.state)?;
    let log = folders.state.join("launch.log");
    let output = File::create(&log).with_context(|| format!("cannot write `{}`", log.display()))?;
    let own = std::env::current_exe().context("cannot find this program")?;
    let mut gateway = Service::start(&own, &["serve", "--port", "0"], &output).context("cannot start a gateway")?;
    for _ in 0..PATIENCE.as_millis() / LOOK.as_millis() {
        let address = own_gateway(context);
        if connect::is_own_gateway(&address, &secret).await {
            return Ok((address, Some(gateway)));
        }
        if !gateway.is_running() {
            break;
        }
        tokio::time::sleep(LOOK).await;
    }
    let message = format!("no gateway runs, and none could be started; `{}` says why", log.display());
    Err(CommandError::new(ExitCode::Failed, message))
}

/// The program on the search path.
fn find(name: &str, path: &str) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt as _;
    let is_program =
        |file: &PathBuf| fs::metadata(file).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0);
    path.split(':').filter(|folder| folder.starts_with('/')).map(|folder| Path::new(folder).join(name)).find(is_program)
}

/// What would be set, as lines for a shell. The key is not shown, but where it lies.
fn shown(program: Program, target: &Target, arguments: &[String], context: &Context) -> String {
    let Settings { variables, arguments: own, file } = program.settings(target);
    let key = match context.config.settings.auth.bearer_token {
        Some(_) => "\"$BEARER_TOKEN\"".to_owned(),
        None => format!("\"$(cat '{}')\"", keys::first_key_path(&context.config.folders).display()),
    };
    let name = format!("{}.json", program.name());
    let mut text = String::new();
    if let Some(file) = file {
        text = format!("cat >{name} <<'END'\n{file}\nEND\n");
    }
    for (variable, value) in &variables {
        writeln!(text, "export {variable}={}", value.for_shell(&key, &name)).expect("a text grows");
    }
    let words = own.iter().chain(arguments).map(|word| format!(" {}", quoted(word)));
    writeln!(text, "{}{}", program.name(), words.collect::<String>()).expect("a text grows");
    text
}

/// A word as a shell reads it.
fn quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=,@".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}
