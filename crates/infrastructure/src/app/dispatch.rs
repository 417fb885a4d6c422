//! From a message to its operation.

use correx_protocol::{ClientMessage, ServerMessage};

use super::App;
use crate::failure::Failure;

impl App {
    /// Does what `message` asks. Answers of the router take as long as the model does; everything
    /// else goes on meanwhile.
    pub async fn handle(&self, message: ClientMessage) -> ServerMessage {
        match self.dispatch(message).await {
            Ok(reply) => reply,
            Err(Failure(error)) => ServerMessage::Error(error),
        }
    }

    async fn dispatch(&self, message: ClientMessage) -> Result<ServerMessage, Failure> {
        match message {
            ClientMessage::GetOverview => self.overview().await,
            ClientMessage::CheckWorkflow { workflow } => self.check_workflow(workflow).await,
            ClientMessage::CopyExample { example, folder, name } => {
                self.copy_example(example, folder, name).await
            }
            ClientMessage::CreateSession { title, workflow, inputs } => {
                self.create_session(title, workflow, inputs).await
            }
            ClientMessage::OpenSession { session_id } => self.open_session(&session_id).await,
            ClientMessage::RenameSession { session_id, title } => {
                self.rename_session(&session_id, &title).await
            }
            ClientMessage::DeleteSession { session_id } => self.delete_session(&session_id).await,
            ClientMessage::StartRun { session_id } => self.start_run(&session_id).await,
            ClientMessage::PauseRun { session_id } => self.pause_run(&session_id).await,
            ClientMessage::ResumeRun { session_id } => self.resume_run(&session_id).await,
            ClientMessage::CancelRun { session_id } => self.cancel_run(&session_id).await,
            ClientMessage::Approve { session_id, stage_id, comment, edited } => {
                self.approve(&session_id, &stage_id, comment, edited).await
            }
            ClientMessage::Rerun { session_id, stage_id } => {
                self.rerun(&session_id, &stage_id).await
            }
            ClientMessage::Deny { session_id, stage_id, reason } => {
                self.deny(&session_id, &stage_id, reason).await
            }
            ClientMessage::ChatInput { session_id, text, mode, target, client_message_id } => {
                self.chat(session_id, text, mode, target, client_message_id).await
            }
            ClientMessage::RetryReply { session_id } => self.retry_reply(session_id).await,
            ClientMessage::StopReply { session_id } => self.stop_reply(&session_id).await,
            ClientMessage::WithdrawNote { session_id, note_id } => {
                self.withdraw_note(&session_id, &note_id).await
            }
            ClientMessage::EditNote { session_id, note_id, content } => {
                self.edit_note(&session_id, &note_id, &content).await
            }
            ClientMessage::MeasureDraft { session_id, text, mode } => {
                self.measure_draft(&session_id, &text, mode).await
            }
            ClientMessage::ReadBlob { session_id, hash } => {
                self.read_blob(&session_id, &hash).await
            }
            ClientMessage::ReadEvents { session_id, from } => {
                self.read_events(&session_id, from).await
            }
            ClientMessage::ReadTurnContext { session_id, turn_id } => {
                self.read_turn_context(&session_id, &turn_id).await
            }
            ClientMessage::GetModel => self.model().await,
            ClientMessage::ListModels => self.list_models().await,
            ClientMessage::UseModel { model, when } => self.use_model(model, when).await,
            ClientMessage::LoadModel => self.load_model().await,
            ClientMessage::UnloadModel => self.unload_model().await,
            ClientMessage::ReadLibrary => self.read_library().await,
            ClientMessage::FindModels => self.find_models().await,
            ClientMessage::StartDownload { model, revision } => {
                self.start_download(&model, revision.as_deref()).await
            }
            ClientMessage::PauseDownload { id } => self.pause_download(&id).await,
            ClientMessage::ResumeDownload { id } => self.resume_download(&id).await,
            ClientMessage::CancelDownload { id, part } => self.cancel_download(&id, part).await,
            ClientMessage::ImportModel { path, name } => self.import_model(path, name).await,
            ClientMessage::PlanDeletion { id } => self.plan_deletion(&id).await,
            ClientMessage::DeleteModel { id } => self.delete_model(&id).await,
        }
    }
}
