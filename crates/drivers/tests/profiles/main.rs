//! The profiles that ship, and what an operator can make of them.

mod configured;
mod guests;
mod launches;

use std::path::Path;

use gembridge_drivers::profile::{
    ApprovalMode, Environment, Execution, Folders, HomeOwner, Launch, LaunchInput, LoginFound, Profile, Sandbox, Trust,
    Version,
};

fn builtin(name: &str) -> Profile {
    Profile::builtin().unwrap().into_iter().find(|profile| profile.name == name).unwrap()
}

fn environment(variables: &[(&str, &str)]) -> Environment {
    variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

struct Start {
    environment: Environment,
    execution: Execution,
    trust: Trust,
    home: HomeOwner,
    version: Option<Version>,
    model: Option<&'static str>,
    approval: ApprovalMode,
    sandbox: Sandbox,
    program: &'static str,
    login_files: bool,
}

impl Start {
    fn with(variables: &[(&str, &str)]) -> Self {
        let mut environment = environment(&[("PATH", "/usr/bin"), ("HOME", "/home/ann")]);
        environment.extend(self::environment(variables));
        Self {
            environment,
            execution: Execution::Chat,
            trust: Trust::Trusted,
            home: HomeOwner::Operator,
            version: Some(Version::new(0, 61, 0)),
            model: None,
            approval: ApprovalMode::Default,
            sandbox: Sandbox::Off,
            program: "/usr/bin/agent",
            login_files: false,
        }
    }

    fn login(&self, profile: &Profile) -> Option<LoginFound> {
        profile.find_login(&self.environment, &|_| self.login_files)
    }

    fn launch(&self, profile: &Profile) -> Result<Launch, gembridge_drivers::profile::ProfileError> {
        profile.launch(&LaunchInput {
            program: Path::new(self.program),
            version: self.version,
            execution: self.execution,
            workspace: Path::new("/ws"),
            trust: self.trust,
            home: self.home,
            folders: Folders { state: Path::new("/state"), private: Path::new("/private"), cache: Path::new("/cache") },
            environment: &self.environment,
            login: self.login(profile).as_ref(),
            model: self.model,
            approval: self.approval,
            sandbox: self.sandbox,
        })
    }
}

fn file<'a>(launch: &'a Launch, path: &str) -> Option<&'a str> {
    let found = launch.files.iter().find(|file| file.path == Path::new(path))?;
    Some(std::str::from_utf8(&found.bytes).unwrap())
}
