//! `gembridge sessions stats`: tokens by day, agent, model and project, and what they cost.

mod chart;
mod day;
mod prices;
mod spending;

use std::collections::{BTreeMap, BTreeSet};

use gembridge_transcripts::{Agent, Located, Scan, Tokens};
use serde::Serialize;

use super::{list, scan, warn};
use crate::cli::args::sessions::{Grouping, StatsArgs};
use crate::command::{Context, pretty};
use crate::exit::CommandError;
use crate::render::style::Style;
use crate::terminal;
use day::Days;
use prices::Prices;
use spending::Spending;

/// The whole of it, for programs.
#[derive(Debug, Serialize)]
struct Report {
    total: Row,
    days: Vec<Row>,
    agents: Vec<Row>,
    models: Vec<Row>,
    projects: Vec<Row>,
    /// Models without a price, where any model has one.
    unpriced_models: Vec<String>,
}

/// The tokens of one day, agent, model or project.
#[derive(Clone, Debug, Default, Serialize)]
struct Row {
    name: String,
    #[serde(flatten)]
    tokens: Tokens,
    total: u64,
    /// In the currency of the price table; absent where no model of the row has a price.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<f64>,
}

pub fn run(args: &StatsArgs, context: &Context) -> Result<(), CommandError> {
    let found = scan(context)?;
    let sessions = chosen(args, &found)?;
    let days = Days::of(args)?;
    let (spending, damages) = spending::of(&sessions, &days, context.terminal);
    warn(&damages);
    let prices = Prices::of(&context.config.settings.prices);
    let report = report(&spending, &prices);
    terminal::print(&if args.json {
        pretty(&serde_json::json!(report))
    } else {
        chart::text(&report, args.by, Style::of(context.terminal.stdout))
    })
}

/// Every session of the scope, those of subagents too. A session that an agent wrote for the gateway is counted from the
/// agent's own file.
fn chosen<'a>(args: &StatsArgs, scan: &'a Scan) -> Result<Vec<&'a Located>, CommandError> {
    let agent = args.agent.as_deref().map(list::agent).transpose()?;
    let found = match &args.project {
        Some(folder) => scan.of_project(&list::real(folder))?,
        None => scan.sessions.iter().collect(),
    };
    let is_the_agents = |session: &Located| {
        let name = session.written_as.as_deref();
        session.agent == Agent::Gembridge && name.is_some_and(|name| scan.sessions.iter().any(|other| other.id == name))
    };
    let is_wanted = |session: &&Located| agent.is_none_or(|agent| session.agent == agent) && !is_the_agents(session);
    Ok(found.into_iter().filter(is_wanted).collect())
}

fn report(spending: &Spending, prices: &Prices) -> Report {
    let mut total = Row { name: "total".to_owned(), ..Row::default() };
    let [mut days, mut agents, mut models, mut projects] = [const { BTreeMap::new() }; 4];
    let mut unpriced = BTreeSet::new();
    for (group, tokens) in spending.groups() {
        let price = group.model.as_deref().and_then(|model| prices.of_model(model));
        if let (None, Some(model), true) = (price, &group.model, prices.has_any()) {
            unpriced.insert(model.to_string());
        }
        let cost = price.map(|price| price.cost(tokens));
        let project = group.project.as_ref().map_or_else(|| "-".to_owned(), |project| project.display().to_string());
        let model = group.model.as_deref().unwrap_or("-").to_owned();
        total.add(tokens, cost);
        for (rows, name) in [
            (&mut days, group.day.clone()),
            (&mut agents, group.agent.to_owned()),
            (&mut models, model),
            (&mut projects, project),
        ] {
            let row: &mut Row = rows.entry(name.clone()).or_insert_with(|| Row { name, ..Row::default() });
            row.add(tokens, cost);
        }
    }
    let by_size = |rows: BTreeMap<String, Row>| {
        let mut rows: Vec<_> = rows.into_values().collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.total));
        rows
    };
    Report {
        total,
        days: days.into_values().collect(),
        agents: by_size(agents),
        models: by_size(models),
        projects: by_size(projects),
        unpriced_models: unpriced.into_iter().collect(),
    }
}

impl Row {
    fn add(&mut self, tokens: &Tokens, cost: Option<f64>) {
        self.tokens.add(tokens);
        self.total = self.tokens.total();
        if let Some(cost) = cost {
            *self.cost.get_or_insert(0.0) += cost;
        }
    }
}

impl Report {
    fn rows(&self, by: Grouping) -> &[Row] {
        match by {
            Grouping::Day => &self.days,
            Grouping::Agent => &self.agents,
            Grouping::Model => &self.models,
            Grouping::Project => &self.projects,
        }
    }
}
