//! The gateway of one round, with the demo agent or with a real one that asks a fake model of this process.

use std::path::Path;

use anyhow::Context as _;
use gembridge_testkit::gemini_api::FakeGemini;
use gembridge_testkit::model_api::FakeModel;
use gembridge_testkit::{opencode_settings, real_claude, real_gemini, real_opencode};
use tempfile::TempDir;

use crate::args::{Args, BenchAgent};
use crate::gateway::Gateway;

/// The default limit of requests a minute for one key, less those of the warm-up.
const REQUESTS: f64 = 90.0;

/// Dropped in this order: the agents end before the model that they ask.
pub struct Stage {
    pub gateway: Gateway,
    model: Model,
}

/// What each request of an honest client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Talk {
    /// A new conversation.
    Anew,
    /// The next small message of the one conversation that the client has.
    GoesOn,
}

enum Model {
    /// The demo agent calls no model API.
    None,
    Gemini(FakeGemini),
    Scripted(FakeModel),
}

impl Stage {
    /// All settings are the defaults, but for how many requests a key may make where the honest clients need more.
    pub async fn start(args: &Args) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let (name, agent) = (args.agent.name(), args.agent);
        let model = agent.model().await?;
        let limits =
            if agent.rate(args) * 60.0 > REQUESTS { "limits.requests = 4000000000\nlimits.queue = 4096" } else { "" };
        let more = args.config.as_deref().map(std::fs::read_to_string).transpose().context("no settings to add")?;
        let settings = format!(
            "default.agent = \"{name}\"\nserver.port = 0\n{limits}\n{}\n{}",
            more.unwrap_or_default(),
            agent.settings()
        );
        let variables = agent.variables(&model, &folder)?;
        let gateway = Gateway::start_with(folder, &settings, &variables)?;
        Ok(Self { gateway, model })
    }

    /// What the model was asked is of no use here.
    pub fn forget_requests(&self) {
        match &self.model {
            Model::None => {}
            Model::Gemini(model) => model.forget_requests(),
            Model::Scripted(model) => model.forget_requests(),
        }
    }
}

impl BenchAgent {
    /// As the name of a model it stands for what the agent uses by default.
    pub fn name(self) -> &'static str {
        match self {
            Self::Demo => "demo",
            Self::Gemini => "gemini",
            Self::Claude => "claude",
            Self::OpenCode => "opencode",
        }
    }

    /// Requests of each honest client a second.
    pub fn rate(self, args: &Args) -> f64 {
        args.rate.unwrap_or(match self {
            Self::Demo => 10.0,
            Self::Gemini | Self::Claude | Self::OpenCode => 1.5,
        })
    }

    /// Where a new conversation takes seconds of a processor, one a second would be the whole machine.
    pub fn talk(self) -> Talk {
        match self {
            Self::Demo | Self::Gemini => Talk::Anew,
            Self::Claude | Self::OpenCode => Talk::GoesOn,
        }
    }

    async fn model(self) -> anyhow::Result<Model> {
        Ok(match self {
            Self::Demo => Model::None,
            Self::Gemini => Model::Gemini(FakeGemini::start().await?),
            Self::Claude | Self::OpenCode => Model::Scripted(FakeModel::start().await?),
        })
    }

    /// Its table of the settings.
    fn settings(self) -> String {
        let table = |program: &Path, limits: &str| {
            format!("[agents.{}]\ncommand = '{}'\n{limits}", self.name(), program.display())
        };
        match self {
            Self::Demo => String::new(),
            Self::Gemini => table(&real_gemini(), ""),
            Self::Claude => table(&real_claude(), ""),
            // Two processes that make the database of a new home at the same time fail: there is no spare here.
            Self::OpenCode => table(&real_opencode(), "limits = { spare = 0, start_seconds = 150 }"),
        }
    }

    /// The variables that lead it to its model.
    fn variables(self, model: &Model, folder: &TempDir) -> anyhow::Result<Vec<(&'static str, String)>> {
        let key = |name| (name, "fake-key".to_owned());
        Ok(match (self, model) {
            (Self::Claude, Model::Scripted(model)) => {
                vec![key("ANTHROPIC_API_KEY"), ("ANTHROPIC_BASE_URL", model.url())]
            }
            (Self::OpenCode, Model::Scripted(model)) => {
                let settings = folder.path().join("opencode.json");
                std::fs::write(&settings, opencode_settings(&model.url_v1()))?;
                vec![("OPENCODE_CONFIG", settings.display().to_string())]
            }
            (_, Model::Gemini(model)) => vec![key("GEMINI_API_KEY"), ("GOOGLE_GEMINI_BASE_URL", model.url())],
            (_, Model::None | Model::Scripted(_)) => Vec::new(),
        })
    }
}
