//! The models that merge pieces, as `tokenizers` takes them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokenizers::models::bpe::BpeTrainer;
use tokenizers::{Model, Token};

use super::bpe::Bpe;
use super::pieces::Pieces;
use super::spm::Spm;

/// What makes tokens of a piece of text.
#[derive(Debug)]
pub(super) enum Merging {
    Pairs(Bpe),
    Scores(Spm),
}

/// A merging model with its tokens.
#[derive(Debug)]
pub(super) struct PieceModel {
    pub(super) merging: Merging,
    pub(super) pieces: Arc<Pieces>,
}

impl PieceModel {
    fn text(&self, id: u32) -> String {
        String::from_utf8_lossy(self.pieces.get(id)).into_owned()
    }
}

impl Model for PieceModel {
    /// Vocabularies come from files; nothing is trained.
    type Trainer = BpeTrainer;

    /// The tokens' own texts are left out: nobody looks at them, and there may be a million.
    fn tokenize(&self, sequence: &str) -> tokenizers::Result<Vec<Token>> {
        // Places are kept in 32 bits.
        if u32::try_from(sequence.len()).is_err() {
            return Err("a text is too long to be cut into tokens".into());
        }
        let found = match &self.merging {
            Merging::Pairs(bpe) => bpe.tokenize(sequence),
            Merging::Scores(spm) => spm.tokenize(sequence),
        };
        Ok(found.into_iter().map(|(id, span)| Token::new(id, String::new(), span)).collect())
    }

    fn token_to_id(&self, token: &str) -> Option<u32> {
        (0..self.pieces.len() as u32).find(|id| self.pieces.get(*id) == token.as_bytes())
    }

    fn id_to_token(&self, id: u32) -> Option<String> {
        ((id as usize) < self.pieces.len()).then(|| self.text(id))
    }

    fn get_vocab(&self) -> HashMap<String, u32> {
        (0..self.pieces.len() as u32).map(|id| (self.text(id), id)).collect()
    }

    fn get_vocab_size(&self) -> usize {
        self.pieces.len()
    }

    fn save(&self, _folder: &Path, _prefix: Option<&str>) -> tokenizers::Result<Vec<PathBuf>> {
        Err("a vocabulary stays in its model's file".into())
    }

    fn get_trainer(&self) -> BpeTrainer {
        BpeTrainer::default()
    }
}
