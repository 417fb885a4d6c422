//! The router, wired.

use std::sync::Arc;

use correx_events::{Clock, EventStore, IdSource};
use correx_inference::InferenceRouter;
use correx_router::{
    DefaultRouterContextBuilder, DefaultRouterFacade, DefaultRouterReducer,
    DefaultRouterRepository, RouterConfig, RouterFacade, RouterParts, RouterProjector,
    TranscriptStore,
};
use correx_sessions::IncrementalReplayer;

/// What the router needs from outside, beside its log and its model.
#[derive(Clone)]
pub struct RouterSurroundings {
    /// Where conversations are kept; `None`: in memory, until the facade goes.
    pub transcripts: Option<Arc<dyn TranscriptStore>>,
    /// Tells the time of turns.
    pub clock: Arc<dyn Clock>,
    /// Names turns and notes.
    pub ids: Arc<dyn IdSource>,
}

/// Builds the router over a log and a model: reducer, projector, replayer, repository, context
/// builder, facade.
pub fn create_router_facade(
    event_store: Arc<dyn EventStore>,
    inference_router: Arc<dyn InferenceRouter>,
    config: RouterConfig,
    surroundings: RouterSurroundings,
) -> Arc<dyn RouterFacade> {
    let replayer =
        IncrementalReplayer::new(event_store.clone(), RouterProjector::new(DefaultRouterReducer));
    let parts = RouterParts {
        repository: Arc::new(DefaultRouterRepository::new(Arc::new(replayer))),
        context_builder: Arc::new(DefaultRouterContextBuilder::new(config.clone())),
        inference: inference_router,
        event_store,
        transcripts: surroundings.transcripts,
        clock: surroundings.clock,
        ids: surroundings.ids,
    };
    Arc::new(DefaultRouterFacade::new(parts, config))
}
