//! The tool server as agents know it: what it says of itself, its list, and calls.

use std::borrow::Cow;
use std::future::Future;
use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, Implementation, ListToolsResult, PaginatedRequestParams, ProtocolVersion,
    ServerCapabilities, ServerConfig,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};

use crate::call;
use crate::desk::Desk;
use crate::place::Caller;

#[derive(Clone)]
pub struct Server {
    pub desk: Arc<Desk>,
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build();
        ServerConfig::new(capabilities).with_server_info(Implementation::new("gembridge", env!("CARGO_PKG_VERSION")))
    }

    /// The versions that have sessions: only in one can an agent be told that its list has changed.
    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(ProtocolVersion::known_up_to(&ProtocolVersion::V_2025_11_25))
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.desk.greet(context.peer);
    }

    fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<ListToolsResult, ErrorData>> + Send + '_ {
        let (edition, list) = self.desk.list();
        if let Some(caller) = caller(&context) {
            caller.gets(edition);
        }
        std::future::ready(Ok(ListToolsResult::with_all_items(list.tools())))
    }

    fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<CallToolResponse, ErrorData>> + Send + '_ {
        let caller = caller(&context);
        // What came with the request is let go of before the wait, which can be long.
        let begun = call::begin(&self.desk, request, context, caller);
        async move { Ok(begun.finish().await.into()) }
    }
}

fn caller(context: &RequestContext<RoleServer>) -> Option<Arc<Caller>> {
    context.extensions.get::<http::request::Parts>()?.extensions.get::<Arc<Caller>>().cloned()
}
