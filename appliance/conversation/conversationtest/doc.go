// Package conversationtest has what a conversation stands between: a model that says what a test wants and can die, hang
// or overflow, a guard that keeps its side of the contract, and a phone that collects what it is sent.
package conversationtest
