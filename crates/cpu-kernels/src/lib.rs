//! Quantized matrix products on the CPU.
