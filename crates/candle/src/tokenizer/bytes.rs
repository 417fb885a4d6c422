//! The alphabet of byte-level vocabularies: every byte is written as one printable character.

/// Bytes that stand for themselves: printable ASCII and Latin-1.
fn is_printable(byte: u8) -> bool {
    matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff)
}

/// The character that `byte` is written as. The others follow from U+0100 on, in order.
pub(super) fn character(byte: u8) -> char {
    if is_printable(byte) {
        return char::from(byte);
    }
    let rank = (0..byte).filter(|before| !is_printable(*before)).count() as u32;
    char::from_u32(0x100 + rank).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// The byte that is written as `character`, when it is of the alphabet.
pub(super) fn byte(character: char) -> Option<u8> {
    let code = u32::from(character);
    match u8::try_from(code) {
        Ok(byte) => is_printable(byte).then_some(byte),
        Err(_) => match code.checked_sub(0x100)? {
            rank @ 0..=32 => Some(rank as u8),
            rank @ 33..=66 => Some((rank - 33 + 0x7f) as u8),
            67 => Some(0xad),
            _ => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_a_character_of_its_own_and_comes_back() {
        let alphabet: std::collections::HashSet<char> = (0..=255).map(character).collect();
        assert_eq!(alphabet.len(), 256);
        assert!((0..=255).all(|each| byte(character(each)) == Some(each)));
        assert_eq!((character(b' '), character(b'\n')), ('Ġ', 'Ċ'));
        assert_eq!((byte('世'), byte(' '), byte('\u{144}')), (None, None, None));
    }
}
