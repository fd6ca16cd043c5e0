//! A tool bridge without a network: the tests call tools as the agents would.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use gembridge_core::BoxFuture;
use gembridge_core::driver::{ServerOrigin, ToolServer};
use gembridge_core::model::{Content, Failure, Opaque, ToolReturn};
use gembridge_core::tool_host::{
    Format, FormatSpec, HostedCall, HostedCallId, HostedTools, Offer, ToolHost, ToolList, ToolNews,
};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

/// Places are numbered in the order in which agents were opened.
#[derive(Default)]
pub struct FakeTools {
    places: Arc<Mutex<Vec<Endpoint>>>,
}

struct Endpoint {
    news: mpsc::Sender<ToolNews>,
    offers: Vec<Offer>,
    calls: u64,
}

/// A call that an agent waits for.
pub struct Waiting(oneshot::Receiver<ToolReturn>);

impl FakeTools {
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Endpoint>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The names of the tools that are offered at a place now.
    pub fn offered(&self, place: usize) -> Vec<String> {
        let places = self.lock();
        let offer = places[place].offers.last();
        offer.map(|offer| offer.tools.iter().map(|tool| tool.name.to_string()).collect()).unwrap_or_default()
    }

    pub fn last_offer(&self, place: usize) -> Offer {
        self.lock()[place].offers.last().expect("something was offered").clone()
    }

    pub fn places(&self) -> usize {
        self.lock().len()
    }

    /// Calls a tool as the agent.
    pub async fn call(&self, place: usize, tool: &str, arguments: &Value) -> Waiting {
        let (reply, result) = oneshot::channel();
        let (news, id) = {
            let place = &mut self.lock()[place];
            place.calls += 1;
            (place.news.clone(), HostedCallId(place.calls))
        };
        let call = HostedCall { id, tool: tool.into(), arguments: opaque(&arguments.to_string()), reply };
        news.send(ToolNews::Called(call)).await.expect("the session listens");
        Waiting(result)
    }

    /// Delivers an answer in the form asked for.
    pub async fn output(&self, place: usize, output: &Value) {
        let news = self.lock()[place].news.clone();
        news.send(ToolNews::Output(opaque(&output.to_string()))).await.expect("the session listens");
    }
}

impl Waiting {
    pub async fn result(self) -> ToolReturn {
        let result =
            tokio::time::timeout(gembridge_core::test_support::PATIENCE, self.0).await.expect("the call has a result");
        result.expect("the call was answered")
    }

    /// The text of the result.
    pub async fn text(self) -> String {
        let texts = self.result().await.content.into_iter().filter_map(|content| match content {
            Content::Text(text) => Some(text.to_str().into_owned()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("|")
    }
}

impl ToolHost for FakeTools {
    fn open(&self) -> Result<HostedTools, Failure> {
        let (sender, news) = mpsc::channel(256);
        let mut places = self.lock();
        let number = places.len();
        places.push(Endpoint { news: sender, offers: Vec::new(), calls: 0 });
        let server = ToolServer {
            name: "workshop".into(),
            url: format!("workshop:{number}"),
            headers: Vec::new(),
            origin: ServerOrigin::Ours,
        };
        let list = Box::new(PlayedTools { places: Arc::clone(&self.places), number });
        Ok(HostedTools { server, list, news })
    }

    /// Knows `type` and `required`.
    fn format(&self, wanted: &FormatSpec) -> Result<Arc<dyn Format>, String> {
        let schema = wanted.schema.as_ref().map(|schema| serde_json::from_slice::<Value>(&schema.0).unwrap());
        match schema {
            Some(schema) if schema.get("type").is_some_and(|kind| !kind.is_string()) => {
                Err(format!("{} is no type", schema["type"]))
            }
            Some(schema) => Ok(Arc::new(Required(schema["required"].as_array().cloned().unwrap_or_default()))),
            None => Ok(Arc::new(Required(Vec::new()))),
        }
    }
}

struct PlayedTools {
    places: Arc<Mutex<Vec<Endpoint>>>,
    number: usize,
}

impl ToolList for PlayedTools {
    fn offer(&mut self, offer: Offer) -> BoxFuture<'static, ()> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)[self.number].offers.push(offer);
        Box::pin(std::future::ready(()))
    }
}

/// An object with these keys.
#[derive(Debug)]
struct Required(Vec<Value>);

impl Format for Required {
    fn find_in(&self, text: &str) -> Result<Opaque, String> {
        let value: Value = serde_json::from_str(text).map_err(|_| "there is no JSON in it".to_owned())?;
        match self.0.iter().find(|key| value.get(key.as_str().unwrap_or_default()).is_none()) {
            Some(key) => Err(format!("{key} is a required property")),
            None => Ok(opaque(text)),
        }
    }

    fn instruction(&self) -> String {
        "(deliver it in the form)".into()
    }
}

fn opaque(json: &str) -> Opaque {
    Opaque(Bytes::copy_from_slice(json.as_bytes()))
}
