//! The connection to the engine.

use correx_infrastructure::{Client, ConnectOptions};
use correx_protocol::ProtocolError;
use tokio::sync::OnceCell;

/// The engine, once it is there: this process owns it, or the process that opened the data
/// directory first does.
pub struct Engine {
    options: ConnectOptions,
    client: OnceCell<Client>,
}

impl Engine {
    /// An engine that is not connected yet.
    pub fn new(options: ConnectOptions) -> Self {
        Self { options, client: OnceCell::new() }
    }

    /// The client; connects first when there is none. Callers that come meanwhile wait for the
    /// same attempt, and a failed one may be made again.
    pub async fn client(&self) -> Result<&Client, ProtocolError> {
        self.client.get_or_try_init(|| Client::connect(self.options.clone())).await
    }
}
