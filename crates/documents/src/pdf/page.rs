//! The text of a page: strings drawn at places, put together to lines and paragraphs.

use std::collections::HashMap;
use std::rc::Rc;

use lopdf::content::{Content, Operation};
use lopdf::{Dictionary, Document, Object, ObjectId};

use super::MAX_PART_BYTES;
use super::font::{self, Font};
use crate::DocumentError;
use crate::document::MAX_TEXT_BYTES;

/// Drawings in drawings that are followed.
const MAX_DEPTH: usize = 12;
/// Saved states that a page may have at a time.
const MAX_STATES: usize = 256;
/// What all pages may draw together, in unpacked bytes and in operations.
const MAX_DRAWN_BYTES: usize = 1024 * 1024 * 1024;
const MAX_OPERATIONS: usize = 50_000_000;

/// The pages of one file.
pub(super) struct Pages<'d> {
    document: &'d Document,
    fonts: HashMap<*const Dictionary, Rc<Font>>,
    bytes_left: usize,
    operations_left: usize,
    text_left: usize,
    /// Letters drawn, and those of them whose text is not known.
    pub(super) letters: usize,
    pub(super) unknown_letters: usize,
    /// Parts that were damaged or too large.
    pub(super) cut_short: usize,
}

/// Moves and scales: `a b c d e f` as files write it.
#[derive(Clone, Copy)]
struct Matrix([f32; 6]);

impl Matrix {
    const UNIT: Self = Self([1.0, 0.0, 0.0, 1.0, 0.0, 0.0]);

    /// First this, then `after`.
    fn then(self, after: Self) -> Self {
        let ([a, b, c, d, e, f], [ta, tb, tc, td, te, tf]) = (self.0, after.0);
        Self([
            a * ta + b * tc,
            a * tb + b * td,
            c * ta + d * tc,
            c * tb + d * td,
            e * ta + f * tc + te,
            e * tb + f * td + tf,
        ])
    }

    fn moved(self, x: f32, y: f32) -> Self {
        Self([1.0, 0.0, 0.0, 1.0, x, y]).then(self)
    }

    fn of(operands: &[Object]) -> Option<Self> {
        let mut numbers = [0.0; 6];
        for (number, operand) in numbers.iter_mut().zip(operands.get(..6)?) {
            *number = operand.as_float().ok()?;
        }
        Some(Self(numbers))
    }
}

/// What `q` saves.
#[derive(Clone)]
struct State {
    matrix: Matrix,
    font: Option<Rc<Font>>,
    size: f32,
    letter_space: f32,
    word_space: f32,
    stretch: f32,
    leading: f32,
}

/// Text as it comes, with the place where the last letter ended.
#[derive(Default)]
struct Lines {
    text: String,
    /// Where the last letter ended, along and across the direction of its line.
    end: Option<(f32, f32)>,
    size: f32,
}

impl<'d> Pages<'d> {
    pub(super) fn new(document: &'d Document) -> Self {
        Self {
            document,
            fonts: HashMap::new(),
            bytes_left: MAX_DRAWN_BYTES,
            operations_left: MAX_OPERATIONS,
            text_left: MAX_TEXT_BYTES,
            letters: 0,
            unknown_letters: 0,
            cut_short: 0,
        }
    }

    /// The text of one page, without white space around it.
    pub(super) fn page(&mut self, id: ObjectId) -> Result<String, DocumentError> {
        let Ok(content) = self.document.get_page_content_with_limit(id, MAX_PART_BYTES) else {
            self.cut_short += 1;
            return Ok(String::new());
        };
        let resources = self.resources_of_page(id);
        let mut lines = Lines::default();
        let state = State {
            matrix: Matrix::UNIT,
            font: None,
            size: 1.0,
            letter_space: 0.0,
            word_space: 0.0,
            stretch: 1.0,
            leading: 0.0,
        };
        self.draw(&content, resources, state, 0, &mut lines)?;
        let text = lines.text.trim();
        self.text_left = match self.text_left.checked_sub(text.len()) {
            Some(left) => left,
            None => return Err(DocumentError::TooMuchInside { limit: MAX_TEXT_BYTES }),
        };
        Ok(text.to_owned())
    }

    /// The nearest resources on the way up from a page.
    fn resources_of_page(&self, id: ObjectId) -> Option<&'d Dictionary> {
        let mut node = self.document.get_dictionary(id).ok()?;
        for _ in 0..64 {
            let resources = node.get_deref(b"Resources", self.document).and_then(Object::as_dict);
            if let Ok(resources) = resources {
                return Some(resources);
            }
            node = node.get_deref(b"Parent", self.document).and_then(Object::as_dict).ok()?;
        }
        None
    }

    fn draw(
        &mut self,
        content: &[u8],
        resources: Option<&'d Dictionary>,
        first: State,
        depth: usize,
        lines: &mut Lines,
    ) -> Result<(), DocumentError> {
        self.bytes_left = self.bytes_left.saturating_sub(content.len());
        let mut state = first;
        let mut saved: Vec<State> = Vec::new();
        let (mut line, mut place) = (Matrix::UNIT, Matrix::UNIT);
        for operation in Content::<Vec<Operation>>::decode_iter(content) {
            self.operations_left = self.operations_left.saturating_sub(1);
            if self.operations_left == 0
                || self.bytes_left == 0
                || lines.text.len() > self.text_left
            {
                return Err(DocumentError::TooMuchInside { limit: MAX_TEXT_BYTES });
            }
            let Ok(operation) = operation else {
                self.cut_short += 1;
                break;
            };
            let operands = operation.operands.as_slice();
            let number = |index: usize| -> f32 {
                operands.get(index).and_then(|operand| operand.as_float().ok()).unwrap_or(0.0)
            };
            match operation.operator.as_str() {
                "q" if saved.len() < MAX_STATES => saved.push(state.clone()),
                "Q" => state = saved.pop().unwrap_or(state),
                "cm" => {
                    if let Some(matrix) = Matrix::of(operands) {
                        state.matrix = matrix.then(state.matrix);
                    }
                }
                "BT" => (line, place) = (Matrix::UNIT, Matrix::UNIT),
                "Tf" => {
                    let name = operands.first().and_then(|name| name.as_name().ok());
                    state.font = name.and_then(|name| self.font(resources, name));
                    state.size = number(1);
                }
                "Tc" => state.letter_space = number(0),
                "Tw" => state.word_space = number(0),
                "Tz" => state.stretch = number(0) / 100.0,
                "TL" => state.leading = number(0),
                "Tm" => {
                    if let Some(matrix) = Matrix::of(operands) {
                        (line, place) = (matrix, matrix);
                    }
                }
                "Td" | "TD" => {
                    if operation.operator == "TD" {
                        state.leading = -number(1);
                    }
                    line = line.moved(number(0), number(1));
                    place = line;
                }
                "T*" => {
                    line = line.moved(0.0, -state.leading);
                    place = line;
                }
                "Tj" | "TJ" => place = self.show(&state, place, operands, lines),
                "'" | "\"" => {
                    if operation.operator == "\"" {
                        (state.word_space, state.letter_space) = (number(0), number(1));
                    }
                    line = line.moved(0.0, -state.leading);
                    place = self.show(&state, line, operands, lines);
                }
                "Do" if depth < MAX_DEPTH => {
                    if let Some(name) = operands.first().and_then(|name| name.as_name().ok()) {
                        self.form(resources, name, &state, depth, lines)?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// A drawing that stands in the file by itself.
    fn form(
        &mut self,
        resources: Option<&'d Dictionary>,
        name: &[u8],
        state: &State,
        depth: usize,
        lines: &mut Lines,
    ) -> Result<(), DocumentError> {
        let form = resources
            .and_then(|resources| resources.get_deref(b"XObject", self.document).ok())
            .and_then(|forms| forms.as_dict().ok())
            .and_then(|forms| forms.get_deref(name, self.document).ok())
            .and_then(|form| form.as_stream().ok());
        let Some(form) = form else { return Ok(()) };
        if form.dict.get(b"Subtype").and_then(Object::as_name).ok() != Some(b"Form") {
            return Ok(());
        }
        let Some(content) = font::content(form) else {
            self.cut_short += 1;
            return Ok(());
        };
        let own = form.dict.get_deref(b"Resources", self.document).and_then(Object::as_dict).ok();
        let mut state = state.clone();
        let matrix = form.dict.get_deref(b"Matrix", self.document).and_then(Object::as_array).ok();
        if let Some(matrix) = matrix.and_then(|matrix| Matrix::of(matrix)) {
            state.matrix = matrix.then(state.matrix);
        }
        self.draw(&content, own.or(resources), state, depth + 1, lines)
    }

    fn font(&mut self, resources: Option<&'d Dictionary>, name: &[u8]) -> Option<Rc<Font>> {
        let fonts = resources?.get_deref(b"Font", self.document).and_then(Object::as_dict).ok()?;
        let font = fonts.get_deref(name, self.document).and_then(Object::as_dict).ok()?;
        let document = self.document;
        let known = self.fonts.entry(std::ptr::from_ref(font));
        Some(Rc::clone(known.or_insert_with(|| Rc::new(Font::read(document, font)))))
    }

    /// Shows strings, with the moves between them, and returns where the next one begins.
    fn show(
        &mut self,
        state: &State,
        place: Matrix,
        operands: &[Object],
        lines: &mut Lines,
    ) -> Matrix {
        let mut place = place;
        for operand in operands {
            match operand {
                Object::String(text, _) => place = self.string(state, place, text, lines),
                Object::Array(items) => {
                    for item in items {
                        match item {
                            Object::String(text, _) => {
                                place = self.string(state, place, text, lines);
                            }
                            item => {
                                let back = item.as_float().unwrap_or(0.0) / 1000.0;
                                place = place.moved(-back * state.size * state.stretch, 0.0);
                            }
                        }
                    }
                }
                _ => {}
            }
        }
        place
    }

    fn string(&mut self, state: &State, place: Matrix, text: &[u8], lines: &mut Lines) -> Matrix {
        let Some(font) = &state.font else { return place };
        let mut place = place;
        for letter in font.letters(text) {
            self.letters += 1;
            if letter.text.is_none() {
                self.unknown_letters += 1;
            }
            let text = letter.text.as_deref().unwrap_or("\u{FFFD}");
            let word_space = if letter.is_space { state.word_space } else { 0.0 };
            let width =
                (letter.width * state.size + state.letter_space + word_space) * state.stretch;
            let next = place.moved(width, 0.0);
            lines.add(text, state.size, place.then(state.matrix), next.then(state.matrix));
            place = next;
        }
        place
    }
}

impl Lines {
    /// A letter from one place to another, in a font of this size.
    fn add(&mut self, letter: &str, size: f32, from: Matrix, to: Matrix) {
        let [a, b, c, d, x, y] = from.0;
        // Text can run in any direction: along is where its letters go, across is where its lines go.
        let length = (a * a + b * b).sqrt();
        let (along_x, along_y) = if length > 0.0 { (a / length, b / length) } else { (1.0, 0.0) };
        let along = |x: f32, y: f32| x * along_x + y * along_y;
        let across = |x: f32, y: f32| y * along_x - x * along_y;
        let height = (c * c + d * d).sqrt() * size.abs();
        let height = if height.is_finite() && height > 0.0 { height } else { 1.0 };
        let (start, base) = (along(x, y), across(x, y));
        if letter.trim().is_empty() {
            if self.end.is_some() && !self.text.ends_with([' ', '\n']) {
                self.text.push(' ');
            }
        } else {
            if let Some((end, last_base)) = self.end {
                let usual = self.size.max(height);
                let down = last_base - base;
                if down.abs() > usual * 0.5 {
                    let breaks = if down > usual * 1.8 || down < -usual { "\n\n" } else { "\n" };
                    self.text.truncate(self.text.trim_end_matches(' ').len());
                    if !self.text.ends_with("\n\n") {
                        self.text.push_str(breaks);
                    }
                } else if (start - end > height * 0.18 || end - start > usual * 2.0)
                    && !self.text.ends_with([' ', '\n'])
                {
                    self.text.push(' ');
                }
            }
            self.text.extend(letter.chars().filter(|c| !c.is_control()));
            self.size = height;
        }
        let [.., x, y] = to.0;
        if !letter.trim().is_empty() || self.end.is_some_and(|(_, last)| (last - base).abs() < 0.1)
        {
            self.end = Some((along(x, y), base));
        }
    }
}
