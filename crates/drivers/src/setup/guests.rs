//! Whether and how an agent serves guests: keys that share nothing with the operator.

use super::{Audience, DriverSetup, GuestFence, NoFence};
use crate::profile::{ApprovalMode, ChatTools, Driver, Execution, LoginFound};

/// Why an agent serves no guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuestRefusal {
    /// The agent works in the operator's own folder.
    Workspace,
    /// The agent's login is one person's own.
    PersonalLogin,
    /// The agent's own tools stay on in chat: it would read files and run commands on a guest's word.
    OwnTools,
    /// The agent runs a process for each turn, for operators only.
    Headless,
    /// The agent is a server of the operator's, which is told nothing of whom it serves.
    A2a,
    /// The agent may have a way to a file, and nothing keeps its process from the operator's.
    NoFence(NoFence),
}

impl DriverSetup {
    /// Decided by how the agent is set up for the operator.
    pub fn guest_refusal(&self) -> Option<GuestRefusal> {
        if self.execution == Execution::Agent {
            Some(GuestRefusal::Workspace)
        } else if self.profile.driver == Driver::Headless {
            Some(GuestRefusal::Headless)
        } else if self.profile.driver == Driver::A2a {
            Some(GuestRefusal::A2a)
        } else if self.profile.tools.in_chat == ChatTools::On {
            Some(GuestRefusal::OwnTools)
        } else if let (GuestFence::Absent(why), false) = (self.guest_fence, self.profile.tools.reach_no_file()) {
            Some(GuestRefusal::NoFence(why))
        } else {
            self.login_for_guests().err()
        }
    }

    /// The same agent with nothing of the operator's: a home of its own, no mode but the default one, and of the tools that the
    /// operator left on only those that reach no file and no command.
    #[must_use]
    pub fn for_guests(self) -> Self {
        let login = self.login_for_guests().unwrap_or_default();
        let mut profile = self.profile;
        let harmless = &profile.tools.harmless;
        profile.chosen.native_tools.retain(|tool| harmless.contains(tool));
        Self { profile, login, approval: ApprovalMode::Default, audience: Audience::Guests, ..self }
    }

    /// The login of a guest's process, whose home is empty. Where only the operator's home has one, there is none to serve with.
    fn login_for_guests(&self) -> Result<Option<LoginFound>, GuestRefusal> {
        let found = self.profile.find_guest_login(&self.environment);
        match found.as_ref().or(self.login.as_ref()) {
            Some(login) if login.personal => Err(GuestRefusal::PersonalLogin),
            _ => Ok(found),
        }
    }
}
