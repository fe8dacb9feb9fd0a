// The oracle answers questions about sets of fields with the library that the API server itself uses
// (sigs.k8s.io/structured-merge-diff, package fieldpath), so that another implementation can be compared with it.
//
// It reads one JSON question a line from standard input and writes one JSON answer a line to standard output, in order.
// A set is a fieldsV1 object; a step is one serialized path element, such as "f:spec" or `k:{"name":"app"}`; a path is
// a list of steps.
//
//	{"op": "union", "a": SET, "b": SET}                  {"set": SET}
//	{"op": "intersection", "a": SET, "b": SET}           {"set": SET}
//	{"op": "difference", "a": SET, "b": SET}             {"set": SET}
//	{"op": "recursive_difference", "a": SET, "b": SET}   {"set": SET}
//	{"op": "leaves", "a": SET}                           {"set": SET}
//	{"op": "below", "a": SET, "path": PATH}              {"set": SET}     what lies below the path
//	{"op": "roundtrip", "a": SET}                        {"set": SET}     read and written again
//	{"op": "from_paths", "paths": [PATH, ...]}           {"set": SET}
//	{"op": "has", "a": SET, "path": PATH}                {"bool": true}
//	{"op": "equals", "a": SET, "b": SET}                 {"bool": true}
//	{"op": "size", "a": SET}                             {"size": 3}
//	{"op": "iterate", "a": SET}                          {"paths": [{"steps": PATH, "text": ".spec.replicas"}, ...]}
//	{"op": "order", "path": [STEP, ...]}                 {"path": [STEP, ...]}     the same steps, sorted
//
// A question that cannot be answered gets {"error": TEXT}, and the next one is read. Lines end with "\n" alone: other
// characters that some languages take for a line's end stand in strings as they are.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sort"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

type question struct {
	Op    string          `json:"op"`
	A     json.RawMessage `json:"a"`
	B     json.RawMessage `json:"b"`
	Path  []string        `json:"path"`
	Paths [][]string      `json:"paths"`
}

type listed struct {
	Steps []string `json:"steps"`
	Text  string   `json:"text"`
}

type answer map[string]any

func main() {
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		os.Exit(1)
	}
}

func serve(in io.Reader, out io.Writer) error {
	lines := bufio.NewReaderSize(in, 1<<16)
	writer := bufio.NewWriterSize(out, 1<<16)
	encoder := json.NewEncoder(writer)
	encoder.SetEscapeHTML(false)
	for {
		line, err := lines.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			if err := encoder.Encode(reply(line)); err != nil {
				return err
			}
		}
		// Whoever asks one question at a time waits for the answer; whoever sends many gets them in bulk.
		if lines.Buffered() == 0 {
			if err := writer.Flush(); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// reply never fails: an error, or a panic of the library, becomes the answer.
func reply(line []byte) (said answer) {
	defer func() {
		if cause := recover(); cause != nil {
			said = answer{"error": fmt.Sprintf("panic: %v", cause)}
		}
	}()
	var asked question
	if err := json.Unmarshal(line, &asked); err != nil {
		return answer{"error": err.Error()}
	}
	said, err := asked.answer()
	if err != nil {
		return answer{"error": err.Error()}
	}
	return said
}

func (q question) answer() (answer, error) {
	switch q.Op {
	case "union", "intersection", "difference", "recursive_difference", "equals":
		return q.ofTwoSets()
	case "leaves", "below", "roundtrip", "has", "size", "iterate":
		return q.ofOneSet()
	case "from_paths":
		return q.fromPaths()
	case "order":
		return q.order()
	}
	return nil, fmt.Errorf("unknown op %q", q.Op)
}

func (q question) ofTwoSets() (answer, error) {
	a, err := readSet("a", q.A)
	if err != nil {
		return nil, err
	}
	b, err := readSet("b", q.B)
	if err != nil {
		return nil, err
	}
	switch q.Op {
	case "union":
		return set(a.Union(b))
	case "intersection":
		return set(a.Intersection(b))
	case "difference":
		return set(a.Difference(b))
	case "recursive_difference":
		return set(a.RecursiveDifference(b))
	}
	return answer{"bool": a.Equals(b)}, nil
}

func (q question) ofOneSet() (answer, error) {
	a, err := readSet("a", q.A)
	if err != nil {
		return nil, err
	}
	path, err := readPath(q.Path)
	if err != nil {
		return nil, err
	}
	switch q.Op {
	case "leaves":
		return set(a.Leaves())
	case "below":
		for _, step := range path {
			a = a.WithPrefix(step)
		}
		return set(a)
	case "has":
		return answer{"bool": a.Has(path)}, nil
	case "size":
		return answer{"size": a.Size()}, nil
	case "iterate":
		return iterate(a)
	}
	return set(a)
}

func (q question) fromPaths() (answer, error) {
	result := fieldpath.NewSet()
	for _, steps := range q.Paths {
		path, err := readPath(steps)
		if err != nil {
			return nil, err
		}
		result.Insert(path)
	}
	return set(result)
}

func (q question) order() (answer, error) {
	path, err := readPath(q.Path)
	if err != nil {
		return nil, err
	}
	sort.SliceStable(path, func(i, j int) bool { return path[i].Less(path[j]) })
	steps, err := writePath(path)
	return answer{"path": steps}, err
}

func iterate(a *fieldpath.Set) (answer, error) {
	paths := []listed{}
	var failed error
	a.Iterate(func(path fieldpath.Path) {
		steps, err := writePath(path)
		failed = errors.Join(failed, err)
		paths = append(paths, listed{steps, path.String()})
	})
	return answer{"paths": paths}, failed
}

func readSet(name string, text json.RawMessage) (*fieldpath.Set, error) {
	if len(text) == 0 {
		return nil, fmt.Errorf("no set %q", name)
	}
	result := fieldpath.NewSet()
	return result, result.FromJSON(bytes.NewReader(text))
}

func set(result *fieldpath.Set) (answer, error) {
	text, err := result.ToJSON()
	return answer{"set": json.RawMessage(text)}, err
}

func readPath(steps []string) (fieldpath.Path, error) {
	path := make(fieldpath.Path, 0, len(steps))
	for _, step := range steps {
		element, err := fieldpath.DeserializePathElement(step)
		if err != nil {
			return nil, fmt.Errorf("step %q: %w", step, err)
		}
		path = append(path, element)
	}
	return path, nil
}

func writePath(path fieldpath.Path) ([]string, error) {
	steps := make([]string, 0, len(path))
	for _, element := range path {
		step, err := fieldpath.SerializePathElement(element)
		if err != nil {
			return nil, err
		}
		steps = append(steps, step)
	}
	return steps, nil
}
