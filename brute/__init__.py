"""Brute, an event-sourced message log for LLM agents."""
